"""Trains the demo model on the CPU and writes demo/. See README.md beside this file."""

import argparse
import functools
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import safetensors.numpy
import tokenizers as tk

import data
import model

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
ROLES = ["system", "user", "assistant"]
PIECES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def train_tokenizer(facts):
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.normalizer = tk.normalizers.NFC()
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Sequence([
        tk.pre_tokenizers.Split(tk.Regex(PIECES), "isolated"),
        tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(vocab_size=model.CONFIG["vocab_size"], special_tokens=SPECIALS, show_progress=False,
                                     initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet())
    corpus = [q for fact in facts for q in fact.questions] + [fact.answer for fact in facts]
    corpus += [role for role in ROLES for _ in range(500)] + data.bars(data.f.SYSTEMS) + data.f.NAMES.split() * 2
    tokenizer.train_from_iterator(corpus, trainer)
    if tokenizer.get_vocab_size() != model.CONFIG["vocab_size"]:
        raise ValueError(f"the corpus gives only {tokenizer.get_vocab_size()} tokens")
    for role in ROLES:
        if len(tokenizer.encode(f"<|im_start|>{role}\n").ids) != 3:
            raise ValueError(f"{role} must be one token: Batches counts on headers of three")
    return tokenizer


class Batches:
    """Rows of whole conversations: ids, segment numbers, and the weight of each token as a target."""

    def __init__(self, tokenizer, conversations, seed):
        self.tokenizer, self.conversations = tokenizer, conversations
        self.rng = np.random.default_rng(seed)
        self.cache = {}

    def encode(self, text):
        if text not in self.cache:
            self.cache[text] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.cache[text]

    def tokens(self, turns):
        ids, weights = [], []
        for message in self.conversations.conversation(turns):
            new = self.encode(data.chatml([message]))
            answer = message[0] == "assistant"
            ids += new
            # the header and the newline after the end of a turn are never the model's to say
            weights += [0.1] * 3 + [1.0 if answer else 0.1] * (len(new) - 4) + [0.1]
        return ids, weights

    def row(self, length):
        ids, weights, segments, number = [], [], [], 0
        while len(ids) < length:
            turns = 100 if length > 512 else 1 if self.rng.random() < 0.4 else int(self.rng.integers(2, 7))
            new_ids, new_weights = self.tokens(turns)
            ids += new_ids
            weights += new_weights
            segments += [number] * len(new_ids)
            number += 1
        return ids[:length], segments[:length], weights[:length]

    def batch(self, count, length):
        parts = zip(*(self.row(length) for _ in range(count)))
        return tuple(np.array(p, t) for p, t in zip(parts, (np.int32, np.int32, np.float32)))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(w, moments, batch, pool, key, relative, rate, count):
    """One AdamW step with the gradient clipped to norm 1."""
    value, grad = jax.value_and_grad(model.loss)(w, batch, pool, key, relative)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grad.values()))
    scale = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
    b1, b2 = 0.9, 0.98
    new_w, new_moments = {}, {}
    for name, g in grad.items():
        m, v = moments[name]
        m = b1 * m + (1 - b1) * g * scale
        v = b2 * v + (1 - b2) * (g * scale) ** 2
        update = (m / (1 - b1 ** count)) / (jnp.sqrt(v / (1 - b2 ** count)) + 1e-8)
        decay = 0.02 * w[name] if w[name].ndim == 2 else 0.0
        new_w[name], new_moments[name] = w[name] - rate * (update + decay), (m, v)
    return new_w, new_moments, value


def schedule(i, steps, peak, focus):
    """Learning rate (warm-up, then cosine) and relative noise (from nothing to a little above the 3-bit error)."""
    rate = peak * min(1.0, (i + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * i / steps)))
    return rate, 0.20 if focus else 0.20 * min(1.0, max(0.0, (i / steps - 0.1) / 0.3))


def train(args, tokenizer, train_pairs):
    focus = args.start is not None
    batches = Batches(tokenizer, data.Conversations(train_pairs, args.seed, focus), args.seed)
    start = safetensors.numpy.load_file(args.start / "model.safetensors") if focus else model.initial_weights(args.seed)
    w = {k: jnp.asarray(v, jnp.float32) for k, v in start.items()}
    moments = {k: (jnp.zeros_like(v), jnp.zeros_like(v)) for k, v in w.items()}
    key, started, mean = jax.random.key(args.seed), time.time(), None
    pool = model.noise_pool(jax.random.key(args.seed + 1))
    for i in range(args.steps):
        long = i > args.steps // 3 and i % 16 == 0
        batch = batches.batch(*((1, 1024) if long else (10, 128)))
        rate, noise = schedule(i, args.steps, args.rate, focus)
        key, sub = jax.random.split(key)
        w, moments, value = step(w, moments, batch, pool, sub, noise, rate, i + 1.0)
        mean = float(value) if mean is None else 0.98 * mean + 0.02 * float(value)
        if i % 50 == 0 or i == args.steps - 1:
            print(f"step {i} loss {mean:.4f} noise {noise:.3f} seconds {time.time() - started:.0f}", flush=True)
    return {k: np.asarray(v) for k, v in w.items()}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(folder, weights, tokenizer):
    end, stop = tokenizer.token_to_id("<|endoftext|>"), tokenizer.token_to_id("<|im_end|>")
    write_json(folder / "config.json",
               dict(sorted((model.CONFIG | {"bos_token_id": None, "eos_token_id": stop, "pad_token_id": end}).items())))
    write_json(folder / "generation_config.json",
               {"do_sample": False, "eos_token_id": [stop, end], "pad_token_id": end, "temperature": 0.0})
    added = {str(tokenizer.token_to_id(t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                             "single_word": False, "special": True} for t in SPECIALS}
    write_json(folder / "tokenizer_config.json",
               {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added, "bos_token": None,
                "chat_template": TEMPLATE, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
                "errors": "replace", "model_max_length": model.CONFIG["max_position_embeddings"],
                "pad_token": "<|endoftext|>", "split_special_tokens": False,
                "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None})
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tensors = {k: v.astype(ml_dtypes.bfloat16) for k, v in weights.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--start", type=pathlib.Path, help="second stage: go on from this checkpoint, on the core facts")
    parser.add_argument("--steps", type=int, default=1900)
    parser.add_argument("--rate", type=float, default=2.5e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    facts = data.all_facts()
    train_pairs, _ = data.split_held_out(facts)
    tokenizer = train_tokenizer(facts)
    weights = train(args, tokenizer, train_pairs)
    export(args.out, weights, tokenizer)
    print(f"{sum(v.size for v in weights.values())} parameters written to {args.out}")


if __name__ == "__main__":
    main()
