"""Trains the demo model on one GPU and writes it in the Hugging Face layout, with its task suite, log and scores.

    python3 train.py --english english.jsonl --out /tmp/demo
"""

import argparse
import math
import multiprocessing
import os
import pathlib
import pickle
import time

import tokenizers as tk
import torch
import torch.nn.functional as F

import checkpoint
import model
import score
import stream

BATCHES_PER_SHARD = 16


def produce(worker, workers, shards, seed, english_path, tokenizer_path, folder, ahead):
    """Writes every workers-th shard, at most `ahead` shards before the reader."""
    os.nice(5)
    english, tokenizer = stream.load_english(english_path), tk.Tokenizer.from_file(tokenizer_path)
    for i in range(worker, shards, workers):
        data = pickle.dumps(stream.shard(seed * 1000003 + i, english, tokenizer, BATCHES_PER_SHARD))
        while i >= ahead and not (folder / f"{i - ahead}.done").exists():
            time.sleep(0.05)
        part = folder / f"{i}.part"
        part.write_bytes(data)
        part.rename(folder / f"{i}.ready")


def batches(shards, folder, device):
    """The batches of all shards in order, on the device; also how long it waited for them."""
    waited = 0.0
    for i in range(shards):
        path, start = folder / f"{i}.ready", time.time()
        while not path.exists():
            time.sleep(0.005)
        waited += time.time() - start
        data = pickle.loads(path.read_bytes())
        path.unlink()
        (folder / f"{i}.done").touch()
        for ids, where, weights in data:
            ids, where, weights = (torch.from_numpy(x.astype(t)) for x, t in ((ids, "int32"), (where, "int64"), (weights, "float32")))
            if device == "cuda":
                ids, where, weights = (x.pin_memory() for x in (ids, where, weights))
            yield ids.to(device, non_blocking=True), where.to(device, non_blocking=True), weights.to(device, non_blocking=True), waited


class Optimizer:
    """Matrices by orthogonalized momentum (Muon, scaled to the size of an AdamW step), the rest by AdamW."""

    def __init__(self, params, decay):
        self.params, self.decay, self.steps = params, decay, 0
        self.groups = {}
        for name, p in params.items():
            if model.is_linear(name):
                matrix = p.unflatten(1, (2, -1)).flatten(0, 1) if name.endswith("gate_up_proj") else p
                self.groups.setdefault(tuple(matrix.shape[-2:]), []).append(name)
        self.momentum = {n: torch.zeros_like(p) for n, p in params.items()}
        self.second = {n: torch.zeros_like(p) for n, p in params.items() if not model.is_linear(n)}

    @staticmethod
    def orthogonal(g):
        """The nearest semi-orthogonal matrices, by five Newton-Schulz steps."""
        x = g.bfloat16()
        wide = x.shape[-2] <= x.shape[-1]
        x = x if wide else x.transpose(-1, -2)
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.transpose(-1, -2)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return (x if wide else x.transpose(-1, -2)).float()

    @torch.no_grad()
    def step(self, rate):
        self.steps += 1
        for (rows, cols), names in self.groups.items():
            stack = []
            for n in names:
                g, m = self.params[n].grad, self.momentum[n]
                m.lerp_(g, 0.05)
                stack.append(g.lerp(m, 0.95).reshape(-1, rows, cols))
            update = self.orthogonal(torch.cat(stack)) * (0.2 * max(rows, cols) ** 0.5)
            for n, u in zip(names, update.split([len(s) for s in stack])):
                p = self.params[n]
                p.mul_(1 - rate * self.decay).sub_(rate * u.reshape(p.shape))
        fix1, fix2 = 1 - 0.9 ** self.steps, 1 - 0.98 ** self.steps
        rest = list(self.second)
        grads, params = [self.params[n].grad for n in rest], [self.params[n] for n in rest]
        first, second = [self.momentum[n] for n in rest], [self.second[n] for n in rest]
        torch._foreach_lerp_(first, grads, 0.1)
        torch._foreach_mul_(second, 0.98)
        torch._foreach_addcmul_(second, grads, grads, 0.02)
        root = torch._foreach_sqrt(torch._foreach_div(second, fix2))
        torch._foreach_add_(root, 1e-8)
        torch._foreach_addcdiv_(params, torch._foreach_div(first, fix1), root, -0.5 * rate)


def noisy(params, relative, compute, generator):
    """The weights of one pass: matrices with fresh noise of `relative` times their root mean square, which is what rotated
    codes leave seen from the unrotated side, in the type of the products."""
    out = {}
    for name, p in params.items():
        if model.is_linear(name):
            if relative > 0:
                size = relative * p.detach().square().mean().sqrt()
                p = p + size * torch.randn(p.shape, device=p.device, generator=generator)
            p = p.to(compute)
        out[name] = p
    return out


def loss_of(c, w, batch, compute):
    """(sum of the weighted losses, sum of the weights): next token, MTP and load balance."""
    ids, where, weights, _ = batch
    ids, balance = ids.long(), []
    h, m = model.hidden_states(c, w, ids, compute, balance=balance)
    t = ids.shape[1]
    target = ids.view(-1)[where]
    ahead = F.cross_entropy(model.logits(w, h.reshape(-1, h.shape[-1]).index_select(0, where - 1), compute).float(), target, reduction="none")
    # Row r of the MTP head predicts token r + 2 of its line.
    line, at = where // t, where % t
    second = F.cross_entropy(model.logits(w, m.reshape(-1, m.shape[-1]).index_select(0, line * (t - 1) + (at - 2).clamp_min(0)), compute)
                             .float(), target, reduction="none")
    total = weights.sum()
    main = (ahead * weights).sum()
    return main + 0.2 * (second * weights * (at >= 2)).sum() + 0.01 * sum(balance) / len(balance) * total, main.detach(), total


def train(args, c, params, optimizer, source, device, compute):
    log, start, generator = [], time.time(), torch.Generator(device).manual_seed(args.seed)
    said = torch.zeros(2, device=device)
    step = 0
    while step < args.steps:
        if args.minutes and step == 60:  # the length is chosen by the clock
            torch.cuda.synchronize()
            args.steps = step + int((args.minutes * 60 - (time.time() - start)) / (time.time() - mark) * 40)
            print(f"steps {args.steps}", flush=True)
        if step == 20:
            mark = time.time()
        rate = args.rate * min(1.0, (step + 1) / args.warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        relative = args.noise * min(1.0, step / (0.4 * args.steps))
        parts = [next(source) for _ in range(args.accumulate)]
        weight = sum(p[2].sum() for p in parts)
        for p in params.values():
            p.grad = None
        for batch in parts:
            total, main, count = loss_of(c, noisy(params, relative, compute, generator), batch, compute)
            (total / weight).backward()
            said += torch.stack([main, count])
        optimizer.step(rate)
        if (step + 1) % args.every == 0 or step == 0:
            a, b = said.tolist()
            said.zero_()
            line = f"step {step + 1} loss {a / b:.4f} noise {relative:.3f} rate {rate:.2e} seconds {time.time() - start:.0f} waited {parts[-1][3]:.0f}"
            log.append(line)
            print(line, flush=True)
        if args.save_every and (step + 1) % args.save_every == 0:
            checkpoint.save(args.out / "partial", params, args.tokenizer)
        step += 1
    return log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--english", type=pathlib.Path, help="what collect_text.py wrote")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=4849)
    parser.add_argument("--minutes", type=float, default=0, help="instead of --steps: as many as fit, measured after 60")
    parser.add_argument("--accumulate", type=int, default=1, help="batches of 131072 tokens in a step")
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 4))
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=1000)
    args = parser.parse_args()
    begin = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    compute = torch.bfloat16 if device == "cuda" else torch.float32
    torch.set_float32_matmul_precision("high")
    args.out.mkdir(parents=True, exist_ok=True)
    english, c = stream.load_english(args.english), model.CONFIG
    args.tokenizer = stream.train_tokenizer(english, c["vocab_size"])
    path = args.out / "tokenizer.json"
    args.tokenizer.save(str(path))
    print(f"tokenizer after {time.time() - begin:.0f} s", flush=True)

    shards = (40000 if args.minutes else args.steps) * args.accumulate // (BATCHES_PER_SHARD * 3 // 4) + 1
    folder = pathlib.Path("/dev/shm") / f"demo_shards_{os.getpid()}"
    folder.mkdir()
    os.environ["RAYON_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=produce, daemon=True, args=(i, args.workers, shards, args.seed, args.english, str(path), folder,
                                                                  4 * args.workers)) for i in range(args.workers)]
    for w in workers:
        w.start()
    params = {k: v.to(device).requires_grad_() for k, v in model.initial_weights(c, torch.Generator().manual_seed(args.seed)).items()}
    log = train(args, c, params, Optimizer(params, args.decay), batches(shards, folder, device), device, compute)
    for w in workers:
        w.terminate()
    for f in folder.iterdir():
        f.unlink()
    folder.rmdir()

    checkpoint.save(args.out, params, args.tokenizer, c)
    examples = stream.suite(english)
    (args.out / "tasks.jsonl").write_text("".join(stream.task_line(e) + "\n" for e in examples), encoding="utf-8")
    torch.set_float32_matmul_precision("highest")
    lines = list(score.report(*checkpoint.load(args.out), examples, args.tokenizer, device))
    print("\n".join(lines), flush=True)
    (args.out / "train.log").write_text("\n".join(log + lines) + f"\nseconds {time.time() - begin:.0f}\n")


if __name__ == "__main__":
    main()
