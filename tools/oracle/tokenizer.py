#!/usr/bin/env python3
"""Compares our tokenizers with the reference libraries (tokenizers, sentencepiece, tiktoken from PyPI).

Makes a virtual environment and small trained tokenizers under build/oracle-tokenizer, builds
tokenizer_bench, and compares ids and decodings on random and multilingual text: code, prose, many
scripts, emoji, combining marks, right-to-left, runs of white space, bytes that are not UTF-8. Then
measures MB/s on one thread beside `tokenizers`. Needs the network the first time. Exit code 1 on any
difference.

  tools/oracle/tokenizer.py                    all of it (about ten minutes the first time)
  tools/oracle/tokenizer.py --mb 1 --no-speed  a quick look
  tools/oracle/tokenizer.py --fixtures DIR     writes small tokenizers with expected ids for the tests
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "oracle-tokenizer"
PACKAGES = ["tokenizers==0.23.3", "sentencepiece==0.2.3", "tiktoken==0.14.0", "protobuf", "unicodedata2"]


def enter_environment(work):
    """Runs this script again inside the virtual environment, which is made on the first call."""
    python = work / "venv" / "bin" / "python"
    marker = work / "venv" / "packages.txt"
    if pathlib.Path(sys.prefix).resolve() == (work / "venv").resolve():
        return
    if not marker.exists() or marker.read_text() != "\n".join(PACKAGES):
        work.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        marker.write_text("\n".join(PACKAGES))
    environment = dict(os.environ, TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
    os.execve(python, [str(python), __file__, *sys.argv[1:]], environment)


def build_bench(work):
    """Builds tokenizer_bench, in a build folder of its own."""
    build = work / "cmake"
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DTQ_BENCH=ON", "-DTQ_TESTS=OFF"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "-j2", "tokenizer_bench"], check=True,
                   stdout=subprocess.DEVNULL)
    return build / "bench" / "tokenizer_bench"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=10.0, help="text to compare, in MB (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random text (default 1)")
    parser.add_argument("--only", default="", help="compare tokenizers whose name holds this text")
    parser.add_argument("--no-speed", action="store_true", help="do not measure")
    parser.add_argument("--work", type=pathlib.Path, default=WORK,
                        help="folder for everything that is made (default build/oracle-tokenizer)")
    parser.add_argument("--bench", type=pathlib.Path, help="a tokenizer_bench that is built already")
    parser.add_argument("--fixtures", type=pathlib.Path, help="write test fixtures here and stop")
    args = parser.parse_args()
    args.work = args.work.resolve()
    enter_environment(args.work)

    import tokenizer_compare
    import tokenizer_train
    if args.fixtures:
        tokenizer_train.write_fixtures(args.work / "fixtures", args.fixtures)
        return 0
    bench = args.bench or build_bench(args.work)
    cases = tokenizer_train.train_all(args.work / "models")
    failures = 0
    for case in cases:
        if args.only in case.name:
            failures += tokenizer_compare.compare(bench, case, args.mb, args.seed)
    if not args.no_speed:
        tokenizer_compare.speed(bench, [c for c in cases if args.only in c.name], args.work)
    print("all equal" if failures == 0 else f"{failures} differences")
    return 0 if failures == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
