"""Trains the tokenizers that tools/oracle/tokenizer.py compares. Each is a folder that our program
reads and an object that gives the reference's answers."""

import base64
import io
import json
import pathlib
import shutil

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import tokenizer_text

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


class HuggingFace:
    """tokenizer.json, by `tokenizers`."""

    def __init__(self, name, folder):
        self.name, self.folder, self.plain = name, folder, False
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)


class SentencePiece:
    """tokenizer.model, by `sentencepiece`, which knows no special tokens in a text."""

    def __init__(self, name, folder):
        self.name, self.folder, self.plain = name, folder, True
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))

    def encode(self, text):
        return self.processor.encode(text)

    def decode(self, ids):
        return self.processor.decode(ids)


class Tiktoken:
    """tiktoken.model with Kimi's expression, by `tiktoken`."""

    def __init__(self, name, folder):
        self.name, self.folder, self.plain = name, folder, False
        ranks = {base64.b64decode(token): int(rank) for token, rank in
                 (line.split() for line in (folder / "tiktoken.model").read_text().splitlines())}
        config = json.loads((folder / "tokenizer_config.json").read_text())
        named = {int(i): token["content"] for i, token in config["added_tokens_decoder"].items()}
        specials = {named.get(i, f"<|reserved_token_{i}|>"): i for i in range(len(ranks), len(ranks) + 256)}
        self.encoding = tiktoken.Encoding(name, pat_str=KIMI, mergeable_ranks=ranks, special_tokens=specials)

    def encode(self, text):
        return self.encoding.encode(text, allowed_special="all")

    def decode(self, ids):
        return self.encoding.decode(ids)


def once(folder, make):
    """Makes a folder's content on the first call only."""
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        (folder / "done").touch()
    return folder


def byte_level_bpe(size, texts):
    def make(folder):
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(tokenizers.Regex(QWEN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=0, show_progress=False,
                                      initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
        tokenizer.train_from_iterator(texts(), trainer)
        tokenizer.add_special_tokens(SPECIALS)
        tokenizer.add_tokens([tokenizers.AddedToken("<tool>", lstrip=True, rstrip=True),
                              tokenizers.AddedToken("na\u00EFve", single_word=True)])
        tokenizer.save(str(folder / "tokenizer.json"))
    return make


def with_llama3_rule(source):
    def make(folder):
        document = json.loads((source / "tokenizer.json").read_text())
        document["normalizer"] = None
        document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = LLAMA3
        document["model"]["ignore_merges"] = True
        (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False))
    return make


def as_tiktoken(source):
    def make(folder):
        document = json.loads((source / "tokenizer.json").read_text())
        unicode_of = sorted(pre_tokenizers.ByteLevel.alphabet())
        plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
        rest = [b for b in range(256) if b not in plain]
        byte_of = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}
        assert sorted(byte_of) == unicode_of
        vocab = sorted(document["model"]["vocab"].items(), key=lambda item: item[1])
        lines = [base64.b64encode(bytes(byte_of[c] for c in text)).decode() + f" {rank}"
                 for rank, (text, _) in enumerate(vocab)]
        (folder / "tiktoken.model").write_text("\n".join(lines) + "\n")
        first = len(lines)
        added = {str(first + i): {"content": text, "special": True}
                 for i, text in enumerate(["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>"])}
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": added, "bos_token": "[BOS]"}))
    return make


def sentences(texts, limit):
    """Lines of the texts, evenly chosen."""
    lines = [line.strip() for text in texts for line in text.splitlines()]
    lines = [line for line in lines if 0 < len(line) < 2000]
    return lines[::max(1, len(lines) // limit)]


def sentence_piece(size, lines, **options):
    def make(folder):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines()), model_writer=model, vocab_size=size,
            num_threads=1,
            character_coverage=0.995, minloglevel=2, **options)
        (folder / "tokenizer.model").write_bytes(model.getvalue())
    return make


def charsmap(folder):
    """The nmt_nfkc table, out of a trained model: field 2 of field 3."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString((folder / "tokenizer.model").read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


def unigram(size, lines, table):
    def make(folder):
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Precompiled(table), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
        trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>",
                                          special_tokens=["<unk>", "<s>", "</s>"])
        tokenizer.train_from_iterator(lines(), trainer)
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
        tokenizer.save(str(folder / "tokenizer.json"))
    return make


def with_byte_tokens(source):
    def make(folder):
        document = json.loads((source / "tokenizer.json").read_text())
        document["model"]["byte_fallback"] = True
        document["model"]["vocab"] += [[f"<0x{b:02X}>", -30.0] for b in range(256)]
        (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False))
    return make


def word_piece(size, lines, lowercase):
    def make(folder):
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False,
                                            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        tokenizer.train_from_iterator(lines(), trainer)
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        tokenizer.save(str(folder / "tokenizer.json"))
    return make


def recipes(work, scale, texts, limit):
    """(reference class, name, maker) in an order in which each finds what it builds on."""
    def lines():
        return sentences(texts(), limit)

    symbols = ["<|user|>", "def ", "\u00FC"]
    yield HuggingFace, "bpe_qwen", byte_level_bpe(scale(120_000), texts)
    yield HuggingFace, "bpe_llama3", with_llama3_rule(work / "bpe_qwen")
    yield Tiktoken, "tiktoken_kimi", as_tiktoken(work / "bpe_qwen")
    yield SentencePiece, "sp_bpe_llama", sentence_piece(
        scale(8000), lines, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True,
        user_defined_symbols=symbols)
    yield SentencePiece, "sp_bpe_nfkc", sentence_piece(scale(8000), lines, model_type="bpe")
    yield SentencePiece, "sp_unigram_t5", sentence_piece(
        scale(8000), lines, model_type="unigram", user_defined_symbols=symbols)
    yield SentencePiece, "sp_unigram_bytes", sentence_piece(
        scale(8000), lines, model_type="unigram", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)
    table = charsmap(work / "sp_unigram_t5")
    yield HuggingFace, "unigram", unigram(scale(8000), lines, table)
    yield HuggingFace, "unigram_bytes", with_byte_tokens(work / "unigram")
    yield HuggingFace, "wordpiece", word_piece(scale(20_000), lines, True)
    yield HuggingFace, "wordpiece_cased", word_piece(scale(20_000), lines, False)


def train_all(work, scale=lambda size: size, texts=tokenizer_text.training_texts, limit=20_000):
    cases = []
    for kind, name, make in recipes(work, scale, texts, limit):
        print(f"{name}: ", end="", flush=True)
        case = kind(name, once(work / name, make))
        cases.append(case)
        print("ready", flush=True)
    return cases


FIXTURE_TEXTS = [
    "", " ", "  ", "\n", "\t x", "Hello world", " Hello  world ", "hello\nworld\r\nfoo", "don't you're WE'LL",
    "12345 3.14 1e-9", "na\u00EFve caf\u00E9 e\u0301", "\u00BD \u2167 \uFB01x \uFF21\uFF22", "Look at \U0001F999 now",
    "\u4F60\u597D\u4E16\u754C \u3053\u3093\u306B\u3061\u306F", "\u0645\u0631\u062D\u0628\u0627 \u05E9\u05DC\u05D5\u05DD",
    "def f(x):\n    return x + 1\n", "\u2581a \u2581", "<s> a </s>", "<unk>", "[CLS] unaffable [SEP]", "a" * 120,
    "\U0001F469\u200D\U0001F4BB\U0001F1E9\U0001F1EA", "\0a\x7F\u200Bb\uFEFF", "\u0958 \uFDFA \u0130", "<|user|> hi \u00FC",
    "x   y\u00A0z\u3000w", "\u0915\u094D\u0937\u093F \u0E2A\u0E27\u0E31\u0E2A\u0E14\u0E35", "!?... -- (a)[b]{c}",
]


def write_fixtures(work, target):
    """Tiny tokenizers with the reference's ids. Packed beside the older ones, from inside their folder:
    tar --sort=name --mtime='2026-01-01 00:00Z' --owner=root:0 --group=root:0 --format=gnu -cf - * |
    xz -9e -T1 > tests/data/tokenizers.tar.xz"""
    wanted = ["sp_bpe_llama", "sp_bpe_nfkc", "sp_unigram_t5", "unigram", "unigram_bytes", "wordpiece"]
    for case in train_all(work, lambda size: 1200, tokenizer_text.small_training_texts, 4000):
        if case.name not in wanted:
            continue
        folder = target / case.name
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("tokenizer.json", "tokenizer.model"):
            if (case.folder / name).exists():
                shutil.copy(case.folder / name, folder / name)
        expected = [{"text": text, "ids": case.encode(text), "decoded": case.decode(case.encode(text))}
                    for text in FIXTURE_TEXTS]
        (folder / "expected.json").write_text(json.dumps(expected, indent=1))
