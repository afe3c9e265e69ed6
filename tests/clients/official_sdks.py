#!/usr/bin/env python3
"""Drives a running server with the official `openai` and `anthropic` packages (pip install openai anthropic).

  turboquant serve --model demo --port 8080 &
  tests/clients/official_sdks.py http://127.0.0.1:8080
"""
import sys

import anthropic
import openai

QUESTION = [{"role": "user", "content": "What is 3 plus 4?"}]
WEATHER = [{"role": "user", "content": "What is the weather in Oslo?"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "The weather of a city", "parameters": SCHEMA}
FAILED = []


def check(name, condition, detail=""):
    print(("ok    " if condition else "FAIL  ") + name + (f": {detail}" if detail else ""))
    if not condition:
        FAILED.append(name)


def try_openai(url):
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    check("models.retrieve", client.models.retrieve(model).id == model)
    plain = client.chat.completions.create(model=model, messages=QUESTION, max_tokens=40)
    text = plain.choices[0].message.content
    check("chat", bool(text) and plain.usage.total_tokens > 0, text)
    chunks = list(client.chat.completions.create(model=model, messages=QUESTION, max_tokens=40, stream=True,
                                                 stream_options={"include_usage": True}))
    streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    check("chat stream", streamed == text and chunks[-1].usage.completion_tokens == plain.usage.completion_tokens)
    with client.chat.completions.stream(model=model, messages=QUESTION, max_tokens=40) as stream:
        final = stream.get_final_completion()
    check("chat stream helper", final.choices[0].message.content == text)

    tools = [{"type": "function", "function": FUNCTION}]
    first = client.chat.completions.create(model=model, messages=WEATHER, tools=tools, max_tokens=200)
    calls = first.choices[0].message.tool_calls or []
    check("chat tool call", len(calls) == 1 and first.choices[0].finish_reason == "tool_calls",
          calls[0].function.arguments if calls else first.choices[0].message.content)
    if calls:
        history = WEATHER + [first.choices[0].message.model_dump(exclude_none=True)] + [
            {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 20 degrees"} for call in calls]
        second = client.chat.completions.create(model=model, messages=history, tools=tools, max_tokens=100)
        check("chat tool round trip", bool(second.choices[0].message.content), second.choices[0].message.content)
        check("chat cache", second.usage.prompt_tokens_details.cached_tokens > 0,
              f"{second.usage.prompt_tokens_details.cached_tokens} of {second.usage.prompt_tokens}")
    with client.chat.completions.stream(model=model, messages=WEATHER, tools=tools, max_tokens=200) as stream:
        final = stream.get_final_completion()
    check("chat tool call stream", len(final.choices[0].message.tool_calls or []) == len(calls))

    done = client.completions.create(model=model, prompt="Once", max_tokens=5)
    check("completions", done.choices[0].finish_reason == "length", done.choices[0].text)

    answer = client.responses.create(model=model, input="What is 3 plus 4?", max_output_tokens=40)
    check("responses", answer.output_text == text and answer.status == "completed")
    more = client.responses.create(model=model, input="Thanks.", previous_response_id=answer.id, max_output_tokens=40)
    check("responses previous_response_id", more.usage.input_tokens > answer.usage.input_tokens)
    check("responses.retrieve", client.responses.retrieve(answer.id).output_text == text)
    client.responses.delete(answer.id)
    with client.responses.stream(model=model, input="What is 3 plus 4?", max_output_tokens=40) as stream:
        kinds = [event.type for event in stream]
        check("responses stream", stream.get_final_response().output_text == text and kinds[-1] == "response.completed")
    called = client.responses.create(model=model, input=WEATHER, max_output_tokens=200,
                                     tools=[{"type": "function", "strict": False, **FUNCTION}])
    check("responses tool call", any(item.type == "function_call" for item in called.output))

    try:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "a b " * 20000}])
        check("context overflow", False)
    except openai.BadRequestError as error:
        check("context overflow", error.code == "context_length_exceeded", error.message[:100])


def try_anthropic(url):
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    check("anthropic models.retrieve", client.models.retrieve(model).id == model)
    plain = client.messages.create(model=model, messages=QUESTION, max_tokens=40)
    text = plain.content[0].text
    check("messages", plain.stop_reason == "end_turn", text)
    with client.messages.stream(model=model, messages=QUESTION, max_tokens=40) as stream:
        streamed = "".join(stream.text_stream)
        final = stream.get_final_message()
    check("messages stream", streamed == text and final.usage.output_tokens == plain.usage.output_tokens)
    count = client.messages.count_tokens(model=model, messages=QUESTION)
    check("count_tokens", count.input_tokens == plain.usage.input_tokens + plain.usage.cache_read_input_tokens)

    tools = [{"name": "get_weather", "description": "The weather of a city", "input_schema": SCHEMA}]
    first = client.messages.create(model=model, messages=WEATHER, tools=tools, max_tokens=200)
    uses = [block for block in first.content if block.type == "tool_use"]
    check("messages tool use", first.stop_reason == "tool_use" and len(uses) == 1, uses[0].input if uses else first.content)
    if uses:
        history = WEATHER + [{"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id,
                                                           "content": "Sunny, 20 degrees"} for use in uses]}]
        second = client.messages.create(model=model, messages=history, tools=tools, max_tokens=100)
        check("messages tool round trip", second.stop_reason == "end_turn", second.content[0].text)
        check("messages cache", second.usage.cache_read_input_tokens > 0)
    with client.messages.stream(model=model, messages=WEATHER, tools=tools, max_tokens=200) as stream:
        final = stream.get_final_message()
    check("messages tool use stream", [b.input for b in final.content if b.type == "tool_use"] == [u.input for u in uses])
    try:
        client.messages.create(model=model, messages=[{"role": "user", "content": "a b " * 20000}], max_tokens=5)
        check("prompt is too long", False)
    except anthropic.BadRequestError as error:
        check("prompt is too long", "prompt is too long" in str(error))


if __name__ == "__main__":
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    try_openai(base)
    try_anthropic(base)
    print(f"{len(FAILED)} failed" if FAILED else "all passed")
    sys.exit(1 if FAILED else 0)
