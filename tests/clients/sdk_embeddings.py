#!/usr/bin/env python3
"""Vectors of texts through OpenAI's SDK: sdk_embeddings.py URL (agents.py calls it)."""
import math
import sys

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="local-key")
TEXTS = ["The sky is blue.", "Der Himmel ist blau.", "1 + 1 = 2"]


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-6 for x, y in zip(a, b))


# The SDK asks for base64 by itself.
many = client.embeddings.create(model="any", input=TEXTS)
assert [item.index for item in many.data] == [0, 1, 2], many
assert many.usage.prompt_tokens == many.usage.total_tokens > 3, many.usage
vectors = [item.embedding for item in many.data]
for text, vector in zip(TEXTS, vectors):
    assert abs(math.hypot(*vector) - 1) < 1e-5, math.hypot(*vector)
    one = client.embeddings.create(model="any", input=text, encoding_format="float").data[0].embedding
    assert close(one, vector), "floats and base64 differ"
short = client.embeddings.create(model="any", input=TEXTS[0], dimensions=8).data[0].embedding
length = math.hypot(*vectors[0][:8])
assert close(short, [x / length for x in vectors[0][:8]]), short
ids = client.embeddings.create(model="any", input=[[5, 6, 7], [8]])
assert ids.usage.prompt_tokens == 4, ids.usage
try:
    client.embeddings.create(model="any", input="")
    raise AssertionError("an empty text has no vector")
except BadRequestError as error:
    assert error.param == "input", error
print(f"TQ-FINAL: {len(vectors[0])} numbers each")
