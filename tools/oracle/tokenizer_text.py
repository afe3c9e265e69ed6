"""Text for tools/oracle/tokenizer.py: deterministic for a seed, from the standard library alone."""

import pathlib
import random
import sysconfig
import unicodedata

# Blocks of scripts, as (first, last) of their letters, with spaces between words or none.
SCRIPTS = {
    "latin": ([(0x61, 0x7A), (0xDF, 0xF6), (0xF8, 0xFF), (0x100, 0x17F)], " "),
    "greek": ([(0x391, 0x3A1), (0x3A3, 0x3C9), (0x3AC, 0x3CE)], " "),
    "cyrillic": ([(0x410, 0x44F), (0x450, 0x45F)], " "),
    "hebrew": ([(0x5D0, 0x5EA), (0x5B0, 0x5BC)], " "),
    "arabic": ([(0x621, 0x63A), (0x641, 0x64A), (0x64B, 0x652)], " "),
    "devanagari": ([(0x905, 0x939), (0x93E, 0x94D)], " "),
    "thai": ([(0xE01, 0xE3A), (0xE40, 0xE4E)], ""),
    "hangul": ([(0xAC00, 0xD7A3)], " "),
    "kana": ([(0x3041, 0x3096), (0x30A1, 0x30FA)], ""),
    "han": ([(0x4E00, 0x9FA5)], ""),
    "georgian": ([(0x10D0, 0x10FA)], " "),
}
EMOJI = ["\U0001F600", "\U0001F44D\U0001F3FD", "\U0001F469\u200D\U0001F4BB", "\u2764\uFE0F",
         "\U0001F1E9\U0001F1EA", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F999", "1\uFE0F\u20E3"]
MARKS = ["\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u05B8", "\u064B", "\u093C", "\u3099"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00A0", "\u2003", "\u3000", "\u200B", "\u2028",
          "\x0b", "\x0c", "\x85", " " * 7, "\n" * 5]
ODD = ["'s", "'LL", "don't", "WE'RE", "it\u2019s", "x'\u017F", "\u212A", "\uFB01", "\u00BD", "\u2167", "\uFF11\uFF12",
       "\uFDFA", "\u0130", "\u1E9E", "<0x41>", "\u2581", "\u2581a", "<s>", "</s>", "<unk>", "[UNK]", "##x",
       "3.14159", "1234567890", "a_b", "foo(bar)[0]{1}", "!==", "...", "/* x */", "\\n", "\0", "\x7f",
       "\uFEFF", "\uFFFD", "\u202E", "\u0600", "\U000E0041", "\u0958", "\uAC00\u11A8", "\u1100\u1161"]


def python_sources(max_bytes):
    """Code and English of the standard library, shuffled with a fixed seed."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    files = sorted(p for p in folder.rglob("*.py") if "site-packages" not in p.parts)
    random.Random(7).shuffle(files)
    out, total = [], 0
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        out.append(text)
        total += len(text)
        if total >= max_bytes:
            break
    return out


def prose(max_bytes):
    """Plain English: lines of the language reference, and sentences from doc strings."""
    import pydoc_data.topics
    lines = []
    for topic in pydoc_data.topics.topics.values():
        lines += [line.strip() for line in topic.splitlines()]
    for source in python_sources(20_000_000):
        for part in source.split('"""')[1::2]:
            lines += [line.strip() for line in part.splitlines()]
    good = [line for line in lines
            if len(line) > 40 and sum(c.isalpha() or c == " " for c in line) > 0.93 * len(line)]
    text = " ".join(good)
    while len(text) < max_bytes:
        text += "\n" + text
    return text[:max_bytes]


class Words:
    """Made-up words of a script, a few of them frequent."""

    def __init__(self, name, rng, count=4000, num_letters=None):
        blocks, self.gap = SCRIPTS[name]
        letters = [chr(c) for first, last in blocks for c in range(first, last + 1)
                   if unicodedata.category(chr(c)) != "Cn"][:num_letters]
        self.words = ["".join(rng.choices(letters, k=rng.randint(1, 8))) for _ in range(count)]
        self.weights = [1 / (i + 2) for i in range(count)]

    def line(self, rng):
        words = rng.choices(self.words, self.weights, k=rng.randint(3, 14))
        return self.gap.join(words) + rng.choice([".", "!", "?", ",", "\u3002", "", ":"])


def assigned(rng):
    """Any character that Python's Unicode tables know, no surrogates."""
    while True:
        c = chr(rng.randrange(0x110000) if rng.random() < 0.5 else rng.randrange(0x3000))
        if unicodedata.category(c) not in ("Cs", "Cn"):
            return c


class Mixer:
    """Records of all kinds."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        words_rng = random.Random(99)
        self.words = {name: Words(name, words_rng) for name in SCRIPTS}
        self.sources = python_sources(6_000_000)
        self.prose = prose(2_000_000)

    def snippet(self):
        rng = self.rng
        kind = rng.randrange(10)
        if kind == 0:
            text = rng.choice(self.sources)
            at = rng.randrange(max(1, len(text) - 10))
            return text[at:at + rng.randint(5, 600)]
        if kind == 1:
            at = rng.randrange(len(self.prose))
            return self.prose[at:at + rng.randint(5, 600)]
        if kind in (2, 3, 4):
            return rng.choice(list(self.words.values())).line(rng)
        if kind == 5:
            return "".join(rng.choice(EMOJI) for _ in range(rng.randint(1, 6)))
        if kind == 6:
            return "".join(rng.choice("aeiou" + "\u05D0\u0627\u0915\u304B") + "".join(rng.choices(MARKS, k=rng.randint(0, 4)))
                           for _ in range(rng.randint(1, 12)))
        if kind == 7:
            return "".join(rng.choices(SPACES, k=rng.randint(1, 6)))
        if kind == 8:
            return rng.choice(ODD)
        return "".join(assigned(rng) for _ in range(rng.randint(1, 20)))

    def record(self):
        """Bytes of one text; a tenth of them are damaged."""
        text = "".join(self.snippet() + self.rng.choice(["", " ", "\n"])
                       for _ in range(self.rng.randint(1, 12)))
        data = bytearray(text.encode())
        if data and self.rng.random() < 0.1:
            for _ in range(self.rng.randint(1, 5)):
                at = self.rng.randrange(len(data))
                if self.rng.random() < 0.5:
                    data[at] = self.rng.randrange(256)
                else:
                    del data[at:at + 1]
                    if not data:
                        break
        return bytes(data)

    def records(self, num_bytes):
        total = 0
        while total < num_bytes:
            record = self.record()
            total += len(record)
            yield record


def training_texts():
    """Texts to train on: all scripts, code and prose."""
    rng = random.Random(5)
    yield from python_sources(14_000_000)
    for name in SCRIPTS:
        words = Words(name, random.Random(99), 6000, 1200)
        yield "\n".join(words.line(rng) for _ in range(6000))
    yield "\n".join(" ".join(EMOJI + ODD[:8]) for _ in range(3000))


def small_training_texts():
    """The same for vocabularies of about a thousand tokens: few letters of each script."""
    rng = random.Random(5)
    yield prose(300_000).replace(". ", ".\n")
    yield from python_sources(100_000)
    for name in SCRIPTS:
        words = Words(name, random.Random(99), 60, 24)
        yield "\n".join(words.line(rng) for _ in range(150))
