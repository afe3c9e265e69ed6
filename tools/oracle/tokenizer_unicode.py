#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.inc: the character classes as the reference (`tokenizers` from
PyPI) knows them, found by asking it about every code point. Its parts are frozen at different
versions of Unicode, so that no one library has them all. Run it in the environment that
tools/oracle/tokenizer.py makes:

  build/oracle-tokenizer/venv/bin/python tools/oracle/tokenizer_unicode.py
"""

import argparse
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(chars):
    out = []
    for c in sorted(chars):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def cut_by(pre_tokenizer):
    """Characters at which a word falls apart."""
    return [c for c in ALL if len(pre_tokenizer.pre_tokenize_str(f"a{chr(c)}a")) > 1
            or pre_tokenizer.pre_tokenize_str(f"a{chr(c)}a")[0][0] == "a"]


def classes():
    import unicodedata2
    from tokenizers import normalizers, pre_tokenizers
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    accents = normalizers.BertNormalizer(**(bert | {"strip_accents": True}))
    clean = normalizers.BertNormalizer(**(bert | {"clean_text": True}))
    strip = normalizers.StripAccents()
    nfkd = normalizers.NFKD()
    changes = [c for c in ALL if unicodedata2.combining(chr(c)) or unicodedata2.decomposition(chr(c))]
    # A mark of class 0 < n < 240 goes before U+0345 (240), one above 1 behind U+0334 (1).
    inert = [c for c in changes if nfkd.normalize_str(chr(c)) == chr(c)
             and nfkd.normalize_str("\u0345" + chr(c)) == "\u0345" + chr(c)
             and nfkd.normalize_str(chr(c) + "\u0334") == chr(c) + "\u0334"]
    words = set(ALL) - set(cut_by(pre_tokenizers.Whitespace()))
    yield "kInert", "which normal forms leave alone: newer than the reference's tables", inert
    yield "kMarks", "M*", [c for c in ALL if strip.normalize_str("a" + chr(c)) == "a"]
    yield "kNonSpacingMarks", "Mn", [c for c in ALL if accents.normalize_str("a" + chr(c)) == "a"]
    yield "kControls", "Cc, Cf, Co without tab and line ends", [
        c for c in ALL if clean.normalize_str(chr(c)) == "" and c not in (0xFFFD,)]
    yield "kPunctuation", "P* and ASCII symbols", cut_by(pre_tokenizers.Punctuation())
    yield "kNumeric", "N*", cut_by(pre_tokenizers.Digits())
    yield "kWordChars", "\\w", words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "src/tokenizer/unicode_tables.inc")
    args = parser.parse_args()
    lines = ["// Made by tools/oracle/tokenizer_unicode.py: ranges of characters, sorted. Data, not to be edited.",
             "// clang-format off"]
    for name, what, chars in classes():
        lines.append(f"// {what}")
        lines.append(f"constexpr CharRange {name}[] = {{")
        line = "   "
        for first, last in ranges(chars):
            entry = f" {{0x{first:X}, 0x{last:X}}},"
            if len(line) + len(entry) > 118:
                lines.append(line)
                line = "   "
            line += entry
        lines += [line, "};"]
    lines.append("// clang-format on")
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
