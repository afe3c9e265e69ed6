"""Training batches without end, and the held-out task suite. The tokens of a batch come from conversations of about the same
length, each from position 0, padded on the right: a causal model needs no mask for that."""

import json
import random
import zlib

import numpy as np

import facts as f
import tasks_numbers
import tasks_text
import world
from chat import IM_END, SPECIAL, Example, answer_text, assistant, segments, user

SYSTEMS = world.bars(f.SYSTEMS)
BATCH_TOKENS = 131072
LENGTHS = 64  # rows are padded to a multiple of this
CONTEXT = 4096
# How often each kind is drawn.
KINDS = {"arithmetic": 6, "enumeration": 3, "units": 2.5, "copying": 3, "json": 3, "tools": 3, "story": 1.2, "facts": 4, "chat": 0.6,
         "unknown": 0.15, "recall": 1.6, "english": 1.0}


def held_out(example):
    """One question in ten belongs to the suite and is never trained."""
    return zlib.crc32(example.key().encode()) % 10 == 0


def load_english(path):
    if path is None:
        return []
    with open(path, encoding="ascii") as lines:
        return [json.loads(line)["text"] for line in lines]


class Source:
    def __init__(self, seed, english):
        self.rng, self.english = random.Random(seed), english
        self.questions, self.paraphrases = world.split_held_out(world.all_facts())
        self.makers = {"arithmetic": tasks_numbers.arithmetic, "enumeration": tasks_numbers.enumeration, "units": tasks_numbers.units,
                       "copying": tasks_numbers.copying, "json": tasks_text.extraction, "story": tasks_text.story,
                       "chat": tasks_text.small_talk, "tools": lambda r: tasks_text.tools(r, self.questions),
                       "facts": lambda r: tasks_text.knowledge(r, self.questions),
                       "recall": lambda r: tasks_text.recall(r, self.english, int(60 * 60 ** r.random()))}

    def example(self, kind):
        while True:
            out = self.makers[kind](self.rng)
            if kind == "facts" or not held_out(out):
                return out

    def vary(self, message):
        """A question as careless people type it."""
        text, r = message["content"], self.rng.random()
        if r < 0.08:
            text = text[0].lower() + text[1:]
        elif r < 0.14:
            text = text.rstrip("?.!") or text
        return user(text)

    def conversation(self):
        """(messages, tools, direct, weight of a said token)"""
        rng = self.rng
        kind = rng.choices(list(KINDS), KINDS.values())[0]
        if kind == "english":
            return None
        system = [{"role": "system", "content": rng.choice(SYSTEMS)}] if rng.random() < 0.15 else []
        if kind == "recall":
            e = self.example(kind)
            return system + e.messages, [], rng.random() < 0.2, 4.0
        if kind == "tools":
            e = self.example(kind)
            return system + e.messages, e.tools, rng.random() < 0.2, 1.0
        r = rng.random()
        turns = 1 if r < 0.5 else rng.randint(2, 4) if r < 0.8 else rng.randint(5, 14)
        out, direct = list(system), False
        kinds = [k for k in KINDS if k not in ("recall", "tools", "english")]
        for _ in range(turns):
            e = self.example(kind) if kind != "unknown" else Example("facts", [user(rng.choice(world.bars(f.UNKNOWN))), assistant(
                "I do not know that. I am only a tiny demo model.")])
            out += [self.vary(e.messages[0]) if kind == "facts" else e.messages[0], *e.messages[1:]]
            direct = e.direct or rng.random() < 0.15
            kind = rng.choices(kinds, [KINDS[k] for k in kinds])[0]
        return out, [], direct, 1.0

    def texts(self):
        """[(text, weight of its tokens)] of the next conversation."""
        rng = self.rng
        drawn = self.conversation()
        if drawn is None:
            if not self.english:
                return self.texts()
            text = rng.choice(self.english)
            size = int(300 * 30 ** rng.random())
            at = rng.randrange(max(1, len(text) - size)) if rng.random() < 0.7 else 0
            return [(text[at:at + size], 0.5)]
        messages, tools, direct, weight = drawn
        given = 0.2 if rng.random() < 0.1 else 0.0
        last = len(messages) - 1
        out = []
        for text, i in segments(messages, tools, direct):
            # An earlier answer that was thought over stands there without its thought: nothing to learn from.
            said = 0.0 if i != last and i >= 0 and messages[i].get("reasoning_content") else weight
            out.append((text, given if i < 0 else said))
        return out


def shard(seed, english, tokenizer, batches):
    """A list of (ids uint16 [B, T], rows of the next-token targets, weights)."""
    source, rows, size = Source(seed, english), [], 0
    while size < batches * BATCH_TOKENS:
        texts, spans = [], []
        for _ in range(256):
            parts = source.texts()
            spans.append((len(texts), len(texts) + len(parts), parts))
            texts += [t for t, _ in parts]
        ids = [e.ids for e in tokenizer.encode_batch_fast(texts)]
        for a, b, parts in spans:
            row = [t for piece in ids[a:b] for t in piece][:CONTEXT]
            weights = np.repeat(np.array([w for _, w in parts], np.float32), [len(x) for x in ids[a:b]])[:CONTEXT]
            if len(row) > 2 and weights[1:].any():
                rows.append((np.array(row, np.uint16), weights))
                size += -(-len(row) // LENGTHS) * LENGTHS
    rows.sort(key=lambda r: -len(r[0]))
    out, i = [], 0
    while i < len(rows):
        length = -(-len(rows[i][0]) // LENGTHS) * LENGTHS
        part = rows[i:i + BATCH_TOKENS // length]
        i += len(part)
        if len(part) < BATCH_TOKENS // length:
            break
        ids, weights = np.zeros((len(part), length), np.uint16), np.zeros((len(part), length), np.float32)
        for line, target, (row, w) in zip(ids, weights, part):
            line[:len(row)], target[:len(row)] = row, w
        weights[:, 0] = 0
        where = np.flatnonzero(weights).astype(np.int32)
        out.append((ids, where, weights.ravel()[where]))
    source.rng.shuffle(out)
    return out


def train_tokenizer(english, vocabulary):
    """Byte-level BPE with single digits, as the family has it."""
    import tokenizers as tk
    source, texts = Source(-1, english), []
    for _ in range(12000):
        texts += [t for t, _ in source.texts()]
    split = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    out = tk.Tokenizer(tk.models.BPE())
    out.normalizer = tk.normalizers.NFC()
    out.pre_tokenizer = tk.pre_tokenizers.Sequence([
        tk.pre_tokenizers.Split(tk.Regex(split), "isolated"), tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    out.decoder = tk.decoders.ByteLevel()
    for s in SPECIAL:
        texts = [t.replace(s, "\n") for t in texts]
    trainer = tk.trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=SPECIAL, show_progress=False,
                                     initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet())
    out.train_from_iterator(texts, trainer)
    plain = [tk.AddedToken(s, special=False, normalized=False) for s in SPECIAL[IM_END + 1:]]
    out.add_tokens(plain)
    return out


def suite(english, per_kind=100):
    """Held-out instances: examples that training rejects; of the facts, phrasings that it never saw."""
    source, out, seen = Source(20261130, english), [], set()
    source.english = []  # the suite must not hang on a text outside the repository
    for kind in ("arithmetic", "enumeration", "units", "copying", "json", "tools", "story", "facts", "chat", "recall"):
        if kind == "facts":
            pairs = source.rng.sample(source.paraphrases, min(per_kind, len(source.paraphrases)))
            out += [Example(kind, [user(q), assistant(fact.answer)]) for q, fact in pairs]
            continue
        count = 0
        while count < (per_kind if kind != "recall" else per_kind * 6 // 10):
            e = source.makers[kind](source.rng)
            if e.key() in seen or not held_out(e):
                continue
            seen.add(e.key())
            out.append(e)
            count += 1
    return out


def task_line(e):
    """One line of the tasks file: what is asked, and the exact answer (what follows a thought, if there is one)."""
    line = {"kind": e.kind, "messages": e.messages[:-1], "answer": answer_text(e.messages[-1])}
    if e.tools:
        line["tools"] = e.tools
    if e.direct:
        line["enable_thinking"] = False
    if e.messages[-1].get("reasoning_content"):
        line["thought"] = e.messages[-1]["reasoning_content"]
    return json.dumps(line, ensure_ascii=False)


def from_task(line):
    """The example of a line; the answer's calls stay text."""
    line = json.loads(line)
    return Example(line["kind"], line["messages"] + [assistant(line["answer"], line.get("thought", ""))], line.get("tools", []),
                   line.get("enable_thinking") is False)
