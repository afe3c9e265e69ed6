"""Asks the program itself: every n-th task through `turboquant generate`, greedy, and compares the answers exactly.

    python3 score_program.py ../../build/release/turboquant ../../demo --every 10
"""

import argparse
import collections
import pathlib
import subprocess

import tokenizers as tk

import chat
import stream


def ask(program, folder, tokenizer, example, threads):
    prompt = chat.render(example.messages[:-1], example.tools, example.direct, generation_prompt=True)
    ids = tokenizer.encode(prompt).ids
    answer = subprocess.run([program, "generate", "--model", folder, "--prompt-tokens", ",".join(map(str, ids)), "--print-tokens", "--temp",
                             "0", "--max-tokens", "256", "--threads", str(threads), "--quiet"], capture_output=True, text=True, check=True).stdout
    text = tokenizer.decode([int(t) for t in answer.split()], skip_special_tokens=False)
    return text.split("</think>\n\n")[-1].removesuffix("<|im_end|>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", help="demo/, or what `turboquant convert` made of it")
    parser.add_argument("--tasks", type=pathlib.Path, default=pathlib.Path(__file__).with_name("tasks.jsonl"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    tokenizer = tk.Tokenizer.from_file(args.folder + "/tokenizer.json")
    totals = collections.defaultdict(lambda: [0, 0])
    lines = args.tasks.read_text(encoding="utf-8").splitlines()
    for line in lines[::args.every]:
        example = stream.from_task(line)
        said, expected = ask(args.program, args.folder, tokenizer, example, args.threads), example.messages[-1]["content"]
        totals[example.kind][0] += said == expected
        totals[example.kind][1] += 1
        if said != expected:
            print(f"{example.kind}: {example.messages[-2]['content'][-100:]!r} -> {said!r}, expected {expected!r}", flush=True)
    right, count = (sum(t[i] for t in totals.values()) for i in (0, 1))
    print(" ".join(f"{k} {a}/{b}" for k, (a, b) in totals.items()), f"all {right}/{count} = {100 * right / count:.1f} %")


if __name__ == "__main__":
    main()
