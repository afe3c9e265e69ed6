#!/usr/bin/env python3
"""Compares our converter and our forward pass with the published package (turboquant-mlx-full, PyPI).

Makes a virtual environment (Python 3.11 or later) and small random checkpoints under
build/oracle-turboquant. Each is converted by our program and by the package: the tensors must be the
same bytes. The package then loads OUR checkpoint and computes a dense forward pass in f32 on the CPU;
its logits are compared with those of `turboquant evaluate --activations f32`: the largest difference
over the standard deviation. Needs the network the
first time. Exit code 1 when bytes differ or logits are further apart than --tolerance.

  tools/oracle/turboquant_package.py                       after cmake --build build/release
  tools/oracle/turboquant_package.py --program PATH        another build of the program
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "oracle-turboquant"
PACKAGES = ["turboquant-mlx-full==0.30.0", "mlx[cpu]==0.32.4"]
TOKENS = [1, 17, 200, 33, 250, 4, 99, 301]

SIZES = {
    "hidden_size": 256,
    "intermediate_size": 384,  # below 512 outputs the package needs no Metal kernel
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 320,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "attention_bias": False,
    "torch_dtype": "float32",
}
MODELS = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "mlp_bias": False},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]},
}
CASES = [
    {"bits": 2},
    {"bits": 3},
    {"bits": 4},
    {"bits": 2, "rotation": "none"},
    {"bits": 3, "rotation": "none"},
    {"bits": 4, "rotation": "none"},
    {"bits": 3, "attn_bits": 4, "mlp_bits": 2},
    {"bits": 3, "group_size": 32, "mlp_bits": 2, "mlp_group_size": 16},
    {"bits": 4, "group_size": 128, "rotation_seed": 7},
]


def enter_environment(venv):
    """Runs this script again inside the virtual environment, which is made on the first call."""
    python = venv / "bin" / "python"
    marker = venv / "packages.txt"
    if pathlib.Path(sys.prefix).resolve() == venv.resolve():
        return
    if not marker.exists() or marker.read_text() != "\n".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        marker.write_text("\n".join(PACKAGES))
    os.execve(python, [str(python), __file__, *sys.argv[1:]], dict(os.environ, HF_HUB_OFFLINE="1"))


def tokenizer_json():
    vocab = {f"<{i}>": i for i in range(SIZES["vocab_size"])}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }


def make_checkpoint(name, folder):
    import mlx.core as mx
    import numpy as np

    config = {**SIZES, **MODELS[name]}
    rng = np.random.default_rng(11)
    hidden, ffn, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    query, key = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    weights = {}

    def matrix(path, rows, columns):
        values = rng.standard_normal((rows, columns)) / np.sqrt(columns)
        weights[path + ".weight"] = mx.array(values.astype(np.float32))

    def norm(path, size):
        weights[path + ".weight"] = mx.array((1 + 0.1 * rng.standard_normal(size)).astype(np.float32))

    matrix("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        norm(prefix + "input_layernorm", hidden)
        norm(prefix + "post_attention_layernorm", hidden)
        for part, rows, columns in [
            ("self_attn.q_proj", query, hidden),
            ("self_attn.k_proj", key, hidden),
            ("self_attn.v_proj", key, hidden),
            ("self_attn.o_proj", hidden, query),
            ("mlp.gate_proj", ffn, hidden),
            ("mlp.up_proj", ffn, hidden),
            ("mlp.down_proj", hidden, ffn),
        ]:
            matrix(prefix + part, rows, columns)
        if name == "qwen3":
            norm(prefix + "self_attn.q_norm", dim)
            norm(prefix + "self_attn.k_norm", dim)
    norm("model.norm", hidden)
    matrix("lm_head", config["vocab_size"], hidden)
    folder.mkdir(parents=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<1>", "eos_token": "<2>"})
    )


def tensors_of(folder):
    import mlx.core as mx

    out = {}
    for file in sorted(folder.glob("model*.safetensors")):
        out.update(mx.load(str(file)))
    return out


def differing_tensors(ours, theirs):
    """Names that are in one only, or whose type, shape or bytes differ."""
    import mlx.core as mx

    out = sorted(set(ours) ^ set(theirs))
    for name in sorted(set(ours) & set(theirs)):
        a, b = ours[name], theirs[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            out.append(name)
        elif not mx.array_equal(a.view(mx.uint8), b.view(mx.uint8)).item():
            out.append(name)
    return out


def run_case(program, source, case, work):
    import mlx.core as mx
    import numpy as np
    from turboquant_mlx import convert as package
    from turboquant_mlx.generate import load_turboquant

    ours, theirs = work / "ours", work / "theirs"
    for folder in (ours, theirs):
        shutil.rmtree(folder, ignore_errors=True)
    flags = [text for key, value in case.items() for text in ("--" + key.replace("_", "-"), str(value))]
    run = [program, "convert", "--hf-path", source, "--mlx-path", ours, "--quiet", "--rounding", "rms", *flags]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    with open(os.devnull, "w") as null:
        stdout, sys.stdout = sys.stdout, null
        try:
            package.convert(str(source), str(theirs), **case)
            model, _ = load_turboquant(str(ours))
        finally:
            sys.stdout = stdout
    our_tensors = tensors_of(ours)
    different = differing_tensors(our_tensors, tensors_of(theirs))
    as_is = np.array(model(mx.array([TOKENS])).astype(mx.float32))[0]
    # The package multiplies codebook and scale in f16, so it rounds every weight (its Metal kernels do
    # not); with both as f32 the product is exact.
    for _, module in model.named_modules():
        if "codebook" in module:
            module.codebook = module.codebook.astype(mx.float32)
            module.scales = module.scales.astype(mx.float32)
    wanted = np.array(model(mx.array([TOKENS])).astype(mx.float32))[0]

    ids, logits = work / "ids.json", work / "logits.safetensors"
    ids.write_text(json.dumps(TOKENS))
    run = [program, "evaluate", "--model", ours, "--tokens", ids, "--logits", logits]
    subprocess.run([*run, "--activations", "f32", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    found = np.array(mx.load(str(logits))["logits"])
    scale = wanted.std()
    agree = float((found.argmax(-1) == wanted.argmax(-1)).mean())
    rounded = float(np.abs(found - as_is).max() / scale)
    exact = float(np.abs(found - wanted).max() / scale)
    return len(our_tensors), different, rounded, exact, agree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "turboquant")
    parser.add_argument("--work", type=pathlib.Path, default=WORK)
    parser.add_argument("--venv", type=pathlib.Path, help="default: WORK/venv")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the logits' standard deviation")
    arguments = parser.parse_args()
    enter_environment(arguments.venv or arguments.work / "venv")

    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"{'model':6} {'settings':58} {'tensors':>7} {'differ':>6} {'f16 weights':>11} {'exact':>8} {'same argmax':>11}")
    failed = False
    for name in MODELS:
        source = arguments.work / name
        shutil.rmtree(source, ignore_errors=True)
        make_checkpoint(name, source)
        for case in CASES:
            count, different, rounded, exact, agree = run_case(arguments.program, source, case, arguments.work)
            settings = " ".join(f"{key}={value}" for key, value in case.items())
            print(f"{name:6} {settings:58} {count:7} {len(different):6} {rounded:11.1e} {exact:8.1e} {agree:11.0%}")
            for tensor in different[:3]:
                print(f"       differs: {tensor}")
            failed = failed or bool(different) or exact > arguments.tolerance
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
