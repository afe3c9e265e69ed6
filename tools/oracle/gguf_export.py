#!/usr/bin/env python3
"""Checks GGUF files of `turboquant convert --to gguf` with the reader of the `gguf` package (PyPI).

Makes a virtual environment and exports under build/oracle-gguf. For every checkpoint given (default:
the GGUF models and float checkpoints of the test data, which a build of the tests unpacks) it writes
an F16 and a Q8_0 file and compares, with the package's own parser and dequantizer: names, shapes,
types, and values against the source's (f16: exact after one rounding; q8_0: within half a step).
Needs the network the first time. Exit code 1 on any difference.

  tools/oracle/gguf_export.py                   after cmake --build build/release
  tools/oracle/gguf_export.py CHECKPOINT ...    others: GGUF sources, or folders with a tokenizer.json
  tools/oracle/gguf_export.py --llama-cpp       also loads each F16 file in llama.cpp (xllamacpp from
                                                PyPI) and compares the 20 best log probabilities
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "oracle-gguf"
DATA = ROOT / "build" / "release" / "test_data"
PACKAGES = ["gguf==0.19.0", "safetensors", "numpy"]
# In a process of its own: it writes to the terminal as it likes.
LLAMA_PROGRAM = """
import json, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 256
params.n_parallel = 1
params.warmup = False
server = xllamacpp.Server(params)
ids = json.loads(sys.argv[2])
answers = []
for n in range(2, len(ids) + 1):
    request = {"prompt": ids[:n], "n_predict": 1, "temperature": 0, "n_probs": 20}
    answers.append(server.handle_completions(request)["choices"][0]["logprobs"])
print(json.dumps(answers))
"""
TOKENS = [1, 17, 200, 33, 250, 4, 99, 60]


def enter_environment(venv, packages):
    """Runs this script again inside the virtual environment, which is made on the first call."""
    python = venv / "bin" / "python"
    marker = venv / "packages.txt"
    if pathlib.Path(sys.prefix).resolve() == venv.resolve():
        return
    if not marker.exists() or not set(packages) <= set(marker.read_text().split("\n")):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        marker.write_text("\n".join(packages))
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


def read(path):
    """Name -> (type, values) and the keys of a GGUF file."""
    import gguf

    reader = gguf.GGUFReader(path)
    tensors = {}
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        values = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        tensors[tensor.name] = (tensor.tensor_type.name, values)
    return tensors, {key: field.contents() for key, field in reader.fields.items()}


def compare(f16, q8):
    """What is wrong with the q8_0 file beside the f16 one."""
    import numpy as np

    problems = []
    if f16.keys() != q8.keys():
        problems.append("names differ")
    for name, (kind, values) in f16.items():
        q8_kind, q8_values = q8[name]
        wanted = ("F32", "F32") if values.ndim == 1 else ("F16", "Q8_0" if values.shape[-1] % 32 == 0 else "F16")
        if (kind, q8_kind) != wanted:
            problems.append(f"{name}: types {kind}, {q8_kind}")
        if values.ndim == 1 or q8_kind == "F16":
            limit = 0.0
        else:
            blocks = values.reshape(-1, 32)
            limit = (np.abs(blocks).max(axis=1, keepdims=True) / 127 * 0.5 * 1.01 + 1e-7).repeat(32, 1)
            limit = limit.reshape(values.shape) + np.abs(values) * 1e-3
        if not (np.abs(q8_values - values) <= limit).all():
            problems.append(f"{name}: q8_0 is off by {np.abs(q8_values - values).max()}")
    return problems


def compare_source(source, written):
    """Against the tensors of a GGUF source: one rounding to f16 at most."""
    import numpy as np

    problems = []
    tensors, _ = read(source)
    for name, (_, values) in tensors.items():
        _, found = written.get(name, ("", None))
        if found is None:
            problems.append(f"{name}: missing")
            continue
        wanted = values if values.ndim == 1 else values.astype(np.float16).astype(np.float32)
        if not np.array_equal(wanted, found):
            problems.append(f"{name}: values differ by {np.abs(wanted - found).max()}")
    return problems


def compare_llama(path, logits):
    """The largest difference of the 20 best log probabilities after 2, 3, ... of the tokens."""
    import numpy as np

    run = [sys.executable, "-c", LLAMA_PROGRAM, str(path), json.dumps(TOKENS)]
    output = subprocess.run(run, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    differences = []
    for row, answer in zip(logits[1:], json.loads(output)):
        if not answer:  # a token that is no whole character is not reported
            continue
        ours = row.astype(np.float64)
        ours -= ours.max()
        ours -= np.log(np.exp(ours).sum())
        for entry in answer["content"][0]["top_logprobs"]:
            differences.append(abs(ours[entry["id"]] - entry["logprob"]))
    return max(differences)


def our_logits(program, path, work):
    from safetensors.numpy import load_file

    ids, out = work / "ids.json", work / "logits.safetensors"
    ids.write_text(json.dumps(TOKENS))
    run = [program, "evaluate", "--model", path, "--tokens", ids, "--logits", out, "--activations", "f32", "--quiet"]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    return load_file(out)["logits"]


def default_sources():
    models = DATA / "gguf" / "models"
    names = ["llama/F16", "llama/Q4_K", "qwen2/F16", "qwen3/BF16", "gemma3/F16"]
    return [models / (name + ".gguf") for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "turboquant")
    parser.add_argument("--work", type=pathlib.Path, default=WORK)
    parser.add_argument("--venv", type=pathlib.Path, help="default: WORK/venv")
    parser.add_argument("--llama-cpp", action="store_true")
    parser.add_argument("--tolerance", type=float, default=0.1, help="of llama.cpp's log probabilities: its cache is f16")
    arguments = parser.parse_args()
    packages = PACKAGES + (["xllamacpp"] if arguments.llama_cpp else [])
    enter_environment(arguments.venv or arguments.work / "venv", packages)

    arguments.work.mkdir(parents=True, exist_ok=True)
    failed = False
    for source in arguments.checkpoints or default_sources():
        files = {}
        keys = {}
        for kind in ("f16", "q8_0"):
            path = arguments.work / f"{kind}.gguf"
            path.unlink(missing_ok=True)
            run = [arguments.program, "convert", "--to", "gguf", "--type", kind, "--hf-path", source, "--out", path]
            subprocess.run([*run, "--quiet"], check=True)
            files[kind], keys = read(path)
        problems = compare(files["f16"], files["q8_0"])
        if source.suffix == ".gguf":
            problems += compare_source(source, files["f16"])
        line = f"{source}: {len(files['f16'])} tensors, {len(keys)} keys"
        if arguments.llama_cpp:
            ours = our_logits(arguments.program, arguments.work / "f16.gguf", arguments.work)
            difference = compare_llama(arguments.work / "f16.gguf", ours)
            line += f", llama.cpp's log probabilities within {difference:.1e}"
            if difference > arguments.tolerance:
                problems.append("llama.cpp disagrees")
        print(line + (": " + "; ".join(problems) if problems else ": good"))
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
