"""Measures the demo model (exact answers, with float weights and after a 3-bit TurboQuant round trip) and writes the
greedy reference tokens for the tests. See README.md beside this file."""

import argparse
import json
import pathlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
import tokenizers as tk

import data
import model

CENTROIDS = {2: [0.4527799975, 1.5104174569], 3: [0.2450941497, 0.7560051861, 1.3439090860, 2.1519452850],
             4: [0.1285059463, 0.3883729570, 0.6572738605, 0.9430078288, 1.2570025732, 1.6188648437, 2.0698191883,
                 2.7332986608]}
HADAMARD_12 = "bff 2aa ec3 896 fb0 a25 cec 989 c3b 962 f0e a58".split()  # one row a number, bit 1 = +1
GROUP = 64

GREEDY = ["Tell me a story about a cat.", "Write a story about a dragon.", "Count from 1 to 12.", "Tell me about penguins.",
          "Tell a short story about a robot."]
GREEDY_TOKENS = 40
MIN_GAP = 0.02


def load(folder):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    return ({k: np.asarray(v).astype(np.float32) for k, v in tensors.items()},
            tk.Tokenizer.from_file(str(folder / "tokenizer.json")))


def hadamard(n):
    """The orthonormal matrix of the rotation, for n = 2^k or 12 * 2^k."""
    small, h = np.ones((1, 1)), np.ones((1, 1))
    if n & (n - 1):
        small = np.array([[1.0 if int(row, 16) >> (11 - c) & 1 else -1.0 for c in range(12)] for row in HADAMARD_12])
    while len(h) * len(small) < n:
        h = np.block([[h, h], [h, -h]])
    out = np.kron(small, h) / np.sqrt(n)
    if out.shape != (n, n):
        raise ValueError(f"no Hadamard matrix of size {n} here")
    return out


def turbo_quant(w, bits, rng):
    """What a matrix is after signs, rotation, `bits`-bit codes with f16 group scales, and back."""
    signs = rng.choice([-1.0, 1.0], w.shape[1])
    rotation = hadamard(w.shape[1])
    groups = ((w * signs) @ rotation.T).reshape(len(w), -1, GROUP)
    rms = np.maximum(np.sqrt((groups ** 2).mean(-1, keepdims=True)), 1e-7)
    half = np.array(CENTROIDS[bits])
    book = np.concatenate([-half[::-1], half])
    codes = np.searchsorted((book[1:] + book[:-1]) / 2, groups / rms, side="right")
    decoded = book.astype(np.float16).astype(float)[codes] * rms.astype(np.float16)
    return ((decoded.reshape(w.shape) @ rotation) * signs).astype(np.float32)


def quantize(weights, bits, seed):
    """All linear matrices through `turbo_quant`, and their relative error over the whole model."""
    rng = np.random.default_rng(seed)
    out, error, total = dict(weights), 0.0, 0.0
    for name in sorted(weights):
        if model.is_linear(name):
            out[name] = turbo_quant(weights[name], bits, rng)
            error += ((out[name] - weights[name]) ** 2).sum()
            total += (weights[name] ** 2).sum()
    return out, float(np.sqrt(error / total))


@jax.jit
def best_tokens(w, ids):
    return jnp.argmax(model.forward(w, ids, jnp.zeros_like(ids)), -1)


def wrong_answers(weights, tokenizer, conversations, batch_tokens=8192):
    """The (prompt, answer) turns that greedy decoding would not answer word for word. Every answer token is predicted
    from the right text before it, which gives the same verdict as generating."""
    w = {k: jnp.asarray(v) for k, v in weights.items()}
    rows = []
    for messages in conversations:
        ids, spans = [], []
        for role, text in messages:
            new = tokenizer.encode(data.chatml([(role, text)])).ids
            if role == "assistant":
                spans.append((len(ids) + 3, len(ids) + len(new) - 1, text))
            ids += new
        rows.append((ids, spans, messages))
    rows.sort(key=lambda r: len(r[0]))
    wrong, start = [], 0
    while start < len(rows):
        length = 64
        while length < len(rows[start][0]):
            length *= 2
        part = [r for r in rows[start:start + batch_tokens // length] if len(r[0]) <= length]
        ids = np.zeros((batch_tokens // length, length), np.int32)
        for line, (row, _, _) in zip(ids, part):
            line[:len(row)] = row
        best = np.asarray(best_tokens(w, ids))
        for line, (row, spans, messages) in zip(best, part):
            for n, (a, b, text) in enumerate(spans):
                if list(line[a - 1:b - 1]) != row[a:b]:
                    wrong.append(([m[1] for m in messages if m[0] == "user"][n], text))
        start += len(part)
    return wrong


def reference_logits(w, ids, dtype):
    """Logits after the last token: the plain forward pass in numpy, in `dtype` arithmetic."""
    c = model.CONFIG
    w = {k: v.astype(dtype) for k, v in w.items()}
    t, d, repeat = len(ids), model.D, model.H // model.G
    angle = np.arange(t)[:, None] * c["rope_theta"] ** (-np.arange(0, d, 2) / d)
    cos, sin = np.cos(angle).astype(dtype)[:, None], np.sin(angle).astype(dtype)[:, None]

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + dtype(c["rms_norm_eps"])) * weight

    def rope(x):
        a, b = x[..., :d // 2], x[..., d // 2:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = w["model.embed_tokens.weight"][ids]
    hidden = np.triu(np.ones((t, t), bool), 1)
    for i in range(c["num_hidden_layers"]):
        m = {part: w[model.layer_name(i, part)].T for part in model.LINEARS}
        h = norm(x, w[model.layer_name(i, "input_layernorm")])
        q = rope((h @ m["self_attn.q_proj"]).reshape(t, -1, d))
        k = np.repeat(rope((h @ m["self_attn.k_proj"]).reshape(t, -1, d)), repeat, 1)
        v = np.repeat((h @ m["self_attn.v_proj"]).reshape(t, -1, d), repeat, 1)
        s = np.einsum("thd,shd->hts", q, k) * dtype(d ** -0.5)
        s = np.where(hidden, dtype(-np.inf), s)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hts,shd->thd", p, v).reshape(t, -1) @ m["self_attn.o_proj"]
        h = norm(x, w[model.layer_name(i, "post_attention_layernorm")])
        gate = h @ m["mlp.gate_proj"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ m["mlp.up_proj"])) @ m["mlp.down_proj"]
    return norm(x[-1], w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T


def greedy(weights, tokenizer, question, count, dtype=np.float32, stop=False):
    """The prompt's ids, `count` greedy ids (fewer with `stop`, at the end of the turn), the smallest top-2 gap."""
    prompt = tokenizer.encode(data.chatml([("user", question)], generation_prompt=True)).ids
    out, gap = [], np.inf
    while len(out) < count:
        logits = reference_logits(weights, prompt + out, dtype)
        first, second = np.sort(logits)[::-1][:2]
        gap = min(gap, float(first - second))
        out.append(int(logits.argmax()))
        if stop and out[-1] == tokenizer.token_to_id("<|im_end|>"):
            break
    return prompt, out, gap


def write_greedy(path, weights, tokenizer):
    cases = []
    for question in GREEDY:
        prompt, out, gap = greedy(weights, tokenizer, question, GREEDY_TOKENS)
        if greedy(weights, tokenizer, question, GREEDY_TOKENS, np.float64)[1] != out:
            raise ValueError(f"f32 and f64 disagree on {question!r}: choose another prompt")
        if gap <= MIN_GAP:
            raise ValueError(f"top-2 gap {gap} on {question!r}: choose another prompt")
        cases.append({"user": question, "prompt_ids": prompt, "greedy_ids": out, "min_top2_gap": round(gap, 4)})
        print(f"{gap:8.3f} {question} -> {tokenizer.decode(out)}")
    body = ",\n".join(json.dumps(c) for c in cases)
    path.write_text('{"what": "greedy tokens of demo/, f32 arithmetic on the bf16 weights", "cases": [\n' + body + "\n]}\n")


def report(weights, tokenizer, samples, questions):
    train_pairs, held = ([p for p in part if p[1].core] for part in data.split_held_out(data.all_facts()))
    asked = train_pairs if questions == 0 else random.Random(0).sample(train_pairs, questions)
    long = data.Conversations(train_pairs, 99, focus=True)
    sets = {"questions": [[("user", q), ("assistant", f.answer)] for q, f in asked],
            "held-out paraphrases": [[("user", q), ("assistant", f.answer)] for q, f in held],
            "turns of long chats": [long.conversation(25) for _ in range(20)]}
    versions = [("bf16", weights)]
    for bits in (4, 3, 2):
        for seed in range(3 if bits == 3 else 1):
            version, error = quantize(weights, bits, seed)
            versions.append((f"{bits}-bit, signs {seed} (relative error {error:.3f})", version))
    for label, version in versions:
        for name, conversations in sets.items():
            total = sum(role == "assistant" for c in conversations for role, _ in c)
            wrong = wrong_answers(version, tokenizer, conversations)
            print(f"{label}: {name}: {100 * (1 - len(wrong) / total):.2f} % of {total}", flush=True)
            for q, a in wrong[:samples]:
                print("    wrong:", repr(q), "expected", repr(a))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wrong", type=int, default=0, help="how many wrong answers to list per line")
    parser.add_argument("--questions", type=int, default=0, help="ask a random sample of this size instead of all")
    parser.add_argument("--prompts", type=pathlib.Path, help="a file of questions to answer at 3 bits")
    parser.add_argument("--greedy", type=pathlib.Path, help="write the reference tokens here")
    args = parser.parse_args()
    weights, tokenizer = load(args.folder)
    if args.prompts:
        quantized, _ = quantize(weights, 3, 0)
        for question in args.prompts.read_text(encoding="utf-8").splitlines():
            print(question, "->", tokenizer.decode(greedy(quantized, tokenizer, question, 150, stop=True)[1]))
    if args.greedy:
        write_greedy(args.greedy, weights, tokenizer)
    report(weights, tokenizer, args.wrong, args.questions)


if __name__ == "__main__":
    main()
