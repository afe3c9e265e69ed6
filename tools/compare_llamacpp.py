#!/usr/bin/env python3
"""Speed beside llama.cpp, in one run: 8 layers of Qwen3-4B's shape (random weights, tied head of 32,000 words).

  tools/compare_llamacpp.py make WORK --llama-bin DIR    write the models, once: about 5 GB
  tools/compare_llamacpp.py run WORK --llama-bin DIR     one round of every program; results are kept in WORK
  tools/compare_llamacpp.py table WORK                   the best of all rounds
  tools/compare_llamacpp.py run WORK --llama-bin DIR --only decode --model M.gguf=MINE   two files of the same model

DIR has llama-bench and llama-quantize (of llama.cpp or a fork). Programs take turns and every measurement has the
memory's read bandwidth beside it, measured right before; a machine whose bandwidth changes from moment to moment is
compared within one regime. The best of all rounds counts: a neighbour can only make a program slower.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
THEIRS = ["Q4_K", "Q3_K", "Q2_K"]
QUANTIZE_NAMES = {"Q4_K": "Q4_K_S", "Q3_K": "Q3_K_S", "Q2_K": "Q2_K"}
OURS = [4, 3, 2]
PREFILLS = [256, 512]
# (ours, theirs, smallest ratio) of the decode speeds.
DECODE_GOALS = [("4-bit", "Q4_K", 1.15), ("3-bit", "Q3_K", 1.5), ("3-bit", "Q4_K", 1.4), ("2-bit", "Q2_K", 1.5)]
PREFILL_GOAL = 1.5  # times the best type


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def make(arguments):
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    hf, f16 = work / "hf", work / "f16.gguf"
    if not hf.exists():
        run([sys.executable, ROOT / "tools/big_checkpoint.py", hf, "--shards", 2, "--layers", 4])
        # Any tokenizer will do: a GGUF file must have one, and nothing here reads it.
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (hf / name).write_bytes((ROOT / "demo" / name).read_bytes())
    if not f16.exists():
        run([arguments.turboquant, "convert", "--quiet", "--to", "gguf", "--hf-path", hf, "--out", f16])
    for kind in THEIRS:
        if not (work / f"{kind}.gguf").exists():
            run([arguments.llama_bin / "llama-quantize", "--pure", f16, work / f"{kind}.gguf", QUANTIZE_NAMES[kind], 2])
            print("wrote", kind)
    for bits in OURS:
        if not (work / f"{bits}-bit").exists():
            run([arguments.turboquant, "convert", "--quiet", "--hf-path", hf, "--out", work / f"{bits}-bit", "--bits", bits,
                 "--quantize-extras", "--extras-bits", bits])
            print("wrote", bits, "bit")


def llama_tests(arguments, model, threads):
    command = [arguments.llama_bin / "llama-bench", "-m", model, "-t", threads, "-o", "json", "-r", arguments.repeat]
    command += arguments.llama_flags.split()
    command += ["-n", 32 if arguments.only != "prefill" else 0]
    command += ["-p", ",".join(map(str, PREFILLS)) if arguments.only != "decode" else 0]
    out = {}
    for test in json.loads(run(command)):
        best = 1e9 / min(test["samples_ns"])
        if test["n_gen"] > 0:
            out["decode"] = best * test["n_gen"]
        else:
            out[f"prefill {test['n_prompt']}"] = best * test["n_prompt"]
    return out


def our_tests(arguments, model, threads):
    command = [arguments.turboquant, "bench", "--quiet", "--json", "--model", model, "--threads", threads, "--depth", 0,
               "--batch", 1, "--repeat", 32 * arguments.repeat if arguments.only != "prefill" else 1,
               "--prefill", ",".join(str(p) for p in PREFILLS for _ in range(arguments.repeat))
               if arguments.only != "decode" else 1]
    report = json.loads(run(command))
    out = {}
    for row in report["rows"]:
        name = "decode" if row["phase"] == "decode" else f"prefill {row['tokens']}"
        if row["phase"] == "prefill" and row["tokens"] not in PREFILLS:
            continue
        if row["phase"] == "decode" and arguments.only == "prefill":
            continue
        out[name] = max(out.get(name, 0), row["tokens_per_second"])
    out["decode_bytes"] = report["decode_bytes"]
    out["bandwidth"] = report["read_bandwidth"]
    return out


def round_of_all(arguments):
    work = arguments.work
    pairs = [(f"{bits}-bit", kind) for bits, kind in zip(OURS, THEIRS)]
    entries = []
    if arguments.model:
        theirs, ours = arguments.model.split("=", 1)
        entries = [("llama.cpp", pathlib.Path(theirs).name, theirs), ("ours", pathlib.Path(ours).name, ours)]
    else:
        for ours, theirs in pairs:
            if arguments.match and arguments.match not in (ours, theirs):
                continue
            entries += [("llama.cpp", theirs, work / f"{theirs}.gguf"), ("ours", ours, work / ours)]
    with open(work / "results.jsonl", "a") as log:
        for program, name, model in entries:
            test = llama_tests if program == "llama.cpp" else our_tests
            line = {"program": program, "label": arguments.label, "model": name, "threads": arguments.threads,
                    **test(arguments, model, arguments.threads)}
            log.write(json.dumps(line) + "\n")
            log.flush()
            print(line)


def table(arguments):
    best, bandwidths = {}, []
    for text in open(arguments.work / "results.jsonl"):
        line = json.loads(text)
        name = f"{line['label']} {line['model']}" if line["program"] == "llama.cpp" else line["model"]
        row = best.setdefault(name, {})
        for key, value in line.items():
            if isinstance(value, float) and key != "bandwidth":
                row[key] = max(row.get(key, 0), value)
        if line.get("bandwidth"):
            bandwidths.append(line["bandwidth"])
    if bandwidths:
        print(f"read bandwidth in these rounds: {min(bandwidths) / 1e9:.1f} to {max(bandwidths) / 1e9:.1f} GB/s\n")
    columns = ["decode"] + [f"prefill {p}" for p in PREFILLS]
    print("| model | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in best.items():
        print(f"| {name} | " + " | ".join(f"{row[c]:.1f}" if c in row else "" for c in columns) + " |")
    print()
    for label in sorted({name.rsplit(" ", 1)[0] for name in best if " " in name}):
        for ours, theirs, goal in DECODE_GOALS:
            a, b = best.get(ours, {}).get("decode"), best.get(f"{label} {theirs}", {}).get("decode")
            if a and b:
                print(f"decode {ours} / {label} {theirs}: {a / b:.2f} (goal {goal})")
        for column in columns[1:]:
            rivals = [best[f"{label} {k}"][column] for k in THEIRS if column in best.get(f"{label} {k}", {})]
            mine = [best[f"{b}-bit"][column] for b in OURS if column in best.get(f"{b}-bit", {})]
            if rivals and mine:
                print(f"{column}, our slowest / {label}'s best type: {min(mine) / max(rivals):.2f} (goal {PREFILL_GOAL})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "run", "table"])
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--llama-bin", type=pathlib.Path, help="folder of llama-bench and llama-quantize")
    parser.add_argument("--turboquant", type=pathlib.Path, default=ROOT / "build/release/turboquant")
    parser.add_argument("--llama-flags", default="", help="more for llama-bench, such as '-rtr 1' of ik_llama.cpp")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--only", choices=["decode", "prefill"])
    parser.add_argument("--match", help="only this pair, such as 4-bit or Q3_K")
    parser.add_argument("--model", help="THEIRS.gguf=OURS: these two instead")
    parser.add_argument("--label", default="llama.cpp", help="what to call their program in the table")
    arguments = parser.parse_args()
    if arguments.what != "table" and arguments.llama_bin is None:
        parser.error("make and run need --llama-bin")
    {"make": make, "run": round_of_all, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
