"""Exact answers of the task suite, and how many drafts of the MTP head would be accepted: plain forward passes, every token
of an answer (and of the thought before it) predicted from the right text before it, which for a right answer is what greedy
decoding gives.

    python3 score.py ../../demo --tasks tasks.jsonl
"""

import argparse
import collections
import pathlib

import torch

import chat
import checkpoint
import quant
import stream
from model import hidden_states, logits


def encode(example, tokenizer):
    """(ids, where the last answer begins)"""
    parts = [(tokenizer.encode(t).ids, i) for t, i in chat.segments(example.messages, example.tools, example.direct)]
    last = len(example.messages) - 1
    ids = [t for piece, i in parts if i <= last for t in piece]
    while parts[-1][1] != last:
        ids = ids[:len(ids) - len(parts.pop()[0])]
    return ids, len(ids) - len(parts[-1][0])


@torch.no_grad()
def score(c, w, examples, tokenizer, device, batch_tokens=16384):
    """{kind: [right, all, drafts accepted, drafts]}, and the wrong ones as (example, first wrong place)."""
    rows = sorted(((*encode(e, tokenizer), e) for e in examples), key=lambda r: -len(r[0]))
    totals, wrong, i = collections.defaultdict(lambda: [0, 0, 0, 0]), [], 0
    w = {k: v.to(device) for k, v in w.items()}
    while i < len(rows):
        part = rows[i:i + max(1, batch_tokens // len(rows[i][0]))]
        i += len(part)
        ids = torch.zeros(len(part), len(part[0][0]), dtype=torch.long)
        for line, (row, _, _) in zip(ids, part):
            line[:len(row)] = torch.tensor(row)
        ids = ids.to(device)
        h, m = hidden_states(c, w, ids, torch.float32)
        for j, (row, start, e) in enumerate(part):
            n = len(row)
            best = logits(w, h[j, start - 1:n - 1], torch.float32).argmax(-1)
            draft = logits(w, m[j, start - 1:n - 2], torch.float32).argmax(-1)  # of the tokens after the answer's first
            right = ids[j, start:n] == best
            t = totals[e.kind]
            t[0] += int(right.all())
            t[1] += 1
            t[2] += int((draft == best[1:]).sum())
            t[3] += n - start - 1
            if not right.all():
                wrong.append((e, int((~right).nonzero()[0])))
    return totals, wrong


def table(label, totals):
    """One line: the kinds' rates in percent, the rate of all, and the accepted drafts."""
    right, count, good, drafts = (sum(t[i] for t in totals.values()) for i in range(4))
    kinds = " ".join(f"{k} {100 * t[0] / t[1]:.0f}" for k, t in totals.items())
    return f"{label}: {100 * right / count:.1f} % of {count} ({kinds}); drafts accepted {100 * good / max(1, drafts):.1f} %"


def report(c, w, examples, tokenizer, device, show=0):
    for bits in (16, 4, 3, 2):
        for seed in range(3 if bits == 3 else 1):
            version, error = (w, 0.0) if bits == 16 else quant.quantize(w, bits, seed)
            totals, wrong = score(c, version, examples, tokenizer, device)
            yield table("bf16" if bits == 16 else f"{bits} bits, signs {seed} (relative error {error:.3f})", dict(sorted(totals.items())))
            for e, at in wrong[:show]:
                yield f"    {e.kind}: {e.messages[-2]['content'][-200:]!r} -> {chat.answer_text(e.messages[-1])!r} wrong at token {at}"


def main():
    import tokenizers as tk
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tasks", type=pathlib.Path, default=pathlib.Path(__file__).with_name("tasks.jsonl"))
    parser.add_argument("--wrong", type=int, default=0, help="how many wrong answers to show per line")
    args = parser.parse_args()
    c, w = checkpoint.load(args.folder)
    tokenizer = tk.Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    examples = [stream.from_task(line) for line in args.tasks.read_text(encoding="utf-8").splitlines()]
    for line in report(c, w, examples, tokenizer, "cuda" if torch.cuda.is_available() else "cpu", args.wrong):
        print(line, flush=True)


if __name__ == "__main__":
    main()
