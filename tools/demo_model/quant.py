"""What TurboQuant leaves of a matrix: signs, Hadamard rotation, codes in groups of 64 with f16 scales, and back."""

import torch

from model import is_linear

CENTROIDS = {2: [0.4527799975, 1.5104174569], 3: [0.2450941497, 0.7560051861, 1.3439090860, 2.1519452850],
             4: [0.1285059463, 0.3883729570, 0.6572738605, 0.9430078288, 1.2570025732, 1.6188648437, 2.0698191883, 2.7332986608]}
GROUP = 64


def hadamard(n, like):
    h = torch.ones(1, 1, dtype=like.dtype, device=like.device)
    while len(h) < n:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])
    if len(h) != n:
        raise ValueError(f"no Hadamard matrix of size {n} here")
    return h / n ** 0.5


def turbo_quant(w, bits, generator):
    """`w` [..., rows, columns] after `bits`-bit codes."""
    n = w.shape[-1]
    signs = (torch.randint(0, 2, (n,), generator=generator) * 2 - 1).to(w)
    rotation = hadamard(n, w)
    groups = ((w * signs) @ rotation).unflatten(-1, (-1, GROUP))
    rms = groups.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-7)
    half = torch.tensor(CENTROIDS[bits], dtype=w.dtype, device=w.device)
    book = torch.cat([-half.flip(0), half])
    codes = torch.bucketize(groups / rms, (book[1:] + book[:-1]) / 2, right=True)
    return ((book.half().to(w)[codes] * rms.half().to(w)).flatten(-2) @ rotation.T) * signs


def quantize(weights, bits, seed=0):
    """All linear matrices, and the relative error over the model."""
    generator, out, error, total = torch.Generator().manual_seed(seed), dict(weights), 0.0, 0.0
    for name in sorted(weights):
        if is_linear(name):
            out[name] = turbo_quant(weights[name].float(), bits, generator)
            error += (out[name] - weights[name]).square().sum().item()
            total += weights[name].float().square().sum().item()
    return out, (error / total) ** 0.5
