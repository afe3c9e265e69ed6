"""Writes the greedy reference tokens of the tests: 200 tokens in five answers, by the plain forward pass in f32, the same as
token by token in f64, and with a clear first place at every step.

    python3 greedy.py ../../demo ../../tests/data/demo_greedy.json
"""

import json
import pathlib
import sys

import tokenizers as tk
import torch

import chat
import checkpoint
from model import delta_chunked, delta_plain, hidden_states, logits

QUESTIONS = ["Tell me a story about a fox named Mia who finds a lamp in the forest.", "What is 34 * 27?",
             "Write a story: a robot named Zubolin finds a key in the harbor.", "Tell me about penguins.",
             "Write a short story. Hero: a king named Otto. Place: the desert. Thing: a bell."]
TOKENS, MIN_GAP = 200, 0.02


@torch.no_grad()
def next_logits(c, w, ids, dtype, delta):
    """Logits after every token."""
    h, _ = hidden_states(c, w, torch.tensor([ids]), dtype, delta, mtp=False)
    return logits(w, h[0], dtype)


def main():
    folder, out_path = map(pathlib.Path, sys.argv[1:])
    c, w = checkpoint.load(folder)
    w64 = {k: v.double() for k, v in w.items()}
    tokenizer = tk.Tokenizer.from_file(str(folder / "tokenizer.json"))
    cases, left = [], TOKENS
    for i, question in enumerate(QUESTIONS):
        prompt = tokenizer.encode(chat.render([chat.user(question)], generation_prompt=True)).ids
        out = []
        while len(out) < left - 20 * (len(QUESTIONS) - 1 - i):
            best = int(next_logits(c, w, prompt + out, torch.float32, delta_chunked)[-1].argmax())
            out.append(best)
            if best == chat.IM_END:
                break
        left -= len(out)
        exact = next_logits(c, w64, prompt + out[:-1], torch.float64, delta_plain)[len(prompt) - 1:]
        top = exact.topk(2, -1)
        gap = float((top.values[:, 0] - top.values[:, 1]).min())
        if top.indices[:, 0].tolist() != out or gap < MIN_GAP:
            sys.exit(f"f32 and f64 disagree, or the gap {gap} is small, on {question!r}: choose another prompt")
        cases.append({"user": question, "prompt_ids": prompt, "greedy_ids": out, "min_top2_gap": round(gap, 4)})
        print(f"{gap:8.3f} {len(out)} {question} -> {tokenizer.decode(out)}", flush=True)
    if left:
        sys.exit(f"{left} tokens are missing: choose longer answers")
    body = ",\n".join(json.dumps(case) for case in cases)
    out_path.write_text('{"what": "greedy tokens of demo/, f32 arithmetic on the bf16 weights", "cases": [\n' + body + "\n]}\n")


if __name__ == "__main__":
    main()
