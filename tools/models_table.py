#!/usr/bin/env python3
"""Writes the table of docs/models.md from what the golden tests reached.

usage: tools/models_table.py [build folder, default build/release]

Runs the logits tests of every fixture (best instruction set, parity mode), asks `turboquant inspect`
for the blocks, and replaces the part of docs/models.md between the two marker lines.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- table: tools/models_table.py -->", "<!-- end of table -->"


def blocks(build, folder):
    """Kinds of mixers and feed-forward parts, each once, in order."""
    out = subprocess.run([build / "turboquant", "inspect", "--model", folder, "--json"],
                         check=True, capture_output=True, text=True).stdout
    model = json.loads(out)["model"]
    mixers, ffns, residuals = [], [], []
    for run in model["blocks"]:
        for kinds, kind in ((mixers, run["mixer"]), (ffns, run["ffn"]), (residuals, run["residual"])):
            if kind != "none" and kind not in kinds:
                kinds.append(kind)
    return model["model_type"], mixers, ffns, residuals


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([build / "tests/golden/golden_tests", "--gtest_filter=*GoldenModel.Logits*",
                        f"--gtest_output=json:{report.name}"], check=True, capture_output=True)
        cases = json.load(open(report.name))["testsuites"][0]["testsuite"]
    reached = {}
    for case in cases:
        name = case["value_param"] if "/" not in case["name"] else case["name"].split("/")[-1]
        for suffix in ("_cpu_amx", "_cpu_avx512", "_cpu_avxvnni", "_cpu_avx2", "_cpu_neon", "_ref_scalar"):
            if name.endswith(suffix):
                reached.setdefault(name[: -len(suffix)], []).append(float(case["logit_difference"]))
    lines = [BEGIN, "| checkpoint | model_type | mixers | feed-forward | residual | logits: largest difference / std |",
             "|---|---|---|---|---|---|"]
    for name, figures in sorted(reached.items()):
        model_type, mixers, ffns, residuals = blocks(build, build / "test_data/models" / name)
        lines.append(f"| {name} | {model_type} | {'; '.join(mixers)} | {'; '.join(ffns)} | "
                     f"{'; '.join(residuals)} | {max(figures):.1e} |")
    lines.append(END)
    page = ROOT / "docs/models.md"
    text = page.read_text()
    head, rest = text.split(BEGIN)
    page.write_text(head + "\n".join(lines) + rest.split(END)[1])


if __name__ == "__main__":
    main()
