"""Checks what training relies on: chunks of the delta rule against its definition (with gradients), the template against the
Python text, and the program's logits against the plain forward pass.

    python3 check.py ../../build/release/turboquant ../../demo
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import jinja2
import tokenizers as tk
import torch
from safetensors.torch import load_file

import chat
import checkpoint
import model
import score
import stream


def check_delta():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 192, 16, dtype=torch.float64, requires_grad=True) for _ in range(3))
    g, beta = -torch.rand(2, 3, 192, dtype=torch.float64), torch.rand(2, 3, 192, dtype=torch.float64)
    weight, results = torch.randn(2, 3, 192, 16, dtype=torch.float64), []
    for delta in (model.delta_chunked, model.delta_plain):
        out = delta(model.l2(q), model.l2(k), v, g, beta)
        results.append([out, *torch.autograd.grad((out * weight).sum(), (q, k, v))])
    worst = max((a - b).abs().max().item() for a, b in zip(*results))
    print(f"delta rule in chunks and token by token: largest difference {worst:.1e}")
    return worst < 1e-12


def check_template(examples):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    template, wrong = environment.from_string(chat.TEMPLATE), 0
    for e in examples:
        for messages in (e.messages, [{"role": "system", "content": "Be brief."}] + e.messages):
            wrong += template.render(messages=messages, tools=e.tools) != chat.render(messages, e.tools)
            asked = template.render(messages=messages[:-1], tools=e.tools, add_generation_prompt=True, enable_thinking=not e.direct)
            wrong += asked != chat.render(messages[:-1], e.tools, e.direct, generation_prompt=True)
    print(f"template and text: {wrong} differences in {4 * len(examples)} renderings")
    return wrong == 0


@torch.no_grad()
def check_program(program, folder, examples):
    c, w = checkpoint.load(folder)
    tokenizer = tk.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = [t for e in examples[::len(examples) // 12] for t in score.encode(e, tokenizer)[0]][:600]
    with tempfile.TemporaryDirectory() as place:
        tokens, out = pathlib.Path(place, "ids.json"), pathlib.Path(place, "logits.safetensors")
        tokens.write_text(json.dumps(ids))
        subprocess.run([program, "evaluate", "--model", folder, "--tokens", tokens, "--logits", out, "--activations", "f32", "--quiet"], check=True)
        theirs = load_file(out)["logits"]
    h, _ = model.hidden_states(c, w, torch.tensor([ids]), torch.float32, mtp=False)
    ours = model.logits(w, h[0], torch.float32)
    worst = ((ours - theirs).abs().max() / ours.std()).item()
    print(f"logits of {len(ids)} tokens: largest difference {worst:.1e} standard deviations")
    return worst < 2e-4


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    examples = [stream.from_task(line) for line in pathlib.Path(__file__).with_name("tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    sys.exit(0 if all([check_delta(), check_template(examples), check_program(program, folder, examples)]) else 1)


if __name__ == "__main__":
    main()
