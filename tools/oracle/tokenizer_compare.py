"""Compares our ids and decodings with a reference's, and measures both. For tools/oracle/tokenizer.py."""

import json
import statistics
import struct
import subprocess
import time

import tokenizer_text

SHOWN = 5  # differences printed in full


def ours(bench, case, records):
    """[(ids, decoded text)] of tokenizer_bench."""
    data = b"".join(struct.pack("<I", len(r)) + r for r in records)
    command = [bench, "check", case.folder] + (["plain"] if case.plain else [])
    out = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
    answers, at = [], 0
    while at < len(out):
        (count,) = struct.unpack_from("<I", out, at)
        ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", out, at)
        answers.append((ids, out[at + 4:at + 4 + size].decode()))
        at += 4 + size
    return answers


def compare(bench, case, megabytes, seed):
    """The number of records that differ. Bytes that are not UTF-8 are U+FFFD for both, one for each
    maximal malformed sequence."""
    records = list(tokenizer_text.Mixer(seed).records(int(megabytes * 1e6)))
    answers = ours(bench, case, records)
    assert len(answers) == len(records)
    bad_ids = bad_text = malformed = num_ids = 0
    for record, (ids, decoded) in zip(records, answers):
        text = record.decode(errors="replace")
        malformed += "\uFFFD" in text
        expected = case.encode(text)
        num_ids += len(expected)
        if ids != expected:
            bad_ids += 1
            if bad_ids <= SHOWN:
                show(case, text, expected, ids)
            continue
        wanted = case.decode(expected)
        if decoded != wanted:
            bad_text += 1
            if bad_text <= SHOWN:
                print(f"  decoding differs: {wanted!r} expected, {decoded!r} found")
    size = sum(len(r) for r in records)
    print(f"{case.name:18} {size / 1e6:6.2f} MB, {len(records)} texts ({malformed} with U+FFFD), {num_ids} ids: "
          f"{bad_ids} differ in ids, {bad_text} in text", flush=True)
    return bad_ids + bad_text


def show(case, text, expected, found):
    """The first place where the ids part."""
    at = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
    before = case.decode(expected[:at])[-20:]
    print(f"  ids differ behind {before!r}: expected {expected[at:at + 6]} {case.decode(expected[at:at + 6])!r}, "
          f"found {found[at:at + 6]} {case.decode(found[at:at + 6])!r}; text of {len(text)} characters")


def median_seconds(call, repeats=5):
    """Of processor time: what else the machine does shall not matter."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def speed(bench, cases, work):
    """MB/s of one thread: a text as a whole, ours and the reference's, and pathological texts."""
    texts = {"english": tokenizer_text.prose(4_000_000),
             "code": "\n".join(tokenizer_text.python_sources(4_000_000))[:4_000_000],
             "one letter": "a" * 1_000_000, "spaces": " " * 1_000_000}
    for case in cases:
        for name, text in texts.items():
            path = work / "speed.txt"
            path.write_text(text)
            out = subprocess.run([bench, "time", case.folder, path, "5"], stdout=subprocess.PIPE, check=True)
            result = json.loads(out.stdout)
            line = f"{case.name:18} {name:10} {result['mb_per_s']:8.2f} MB/s, {result['seconds']:.3f} s"
            if name in ("english", "code"):
                # In parts, as a reference is meant to be used; a whole text is slower for it.
                size = len(path.read_bytes())
                whole = size / 1e6 / median_seconds(lambda: case.encode(text), 3)
                parts = [text[i:i + 10_000] for i in range(0, len(text), 10_000)]
                cut = size / 1e6 / median_seconds(lambda: [case.encode(part) for part in parts], 3)
                best = max(whole, cut)
                line += (f"; reference {whole:.2f} MB/s whole, {cut:.2f} in parts: "
                         f"{result['mb_per_s'] / best:.1f} x its best")
            print(line, flush=True)
