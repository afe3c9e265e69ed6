"""The demo model in plain PyTorch: a `qwen3_5_moe_text` decoder (Gated DeltaNet and gated attention, experts, a head that
predicts one token further). Weights are a dict of tensors with the names of the checkpoint; the experts of a layer are
stacked. Functions compute in the type of the weights, so that one text serves training (bf16) and reference (f32, f64)."""

import math

import torch
import torch.nn.functional as F

CONFIG = {
    "architectures": ["Qwen3_5MoeForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "dtype": "bfloat16",
    "eos_token_id": 2,
    "full_attention_interval": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention", "linear_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 64,
    "max_position_embeddings": 4096,
    "model_type": "qwen3_5_moe_text",
    "moe_intermediate_size": 64,
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "num_attention_heads": 4,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "output_router_logits": False,
    "pad_token_id": 0,
    "partial_rotary_factor": 0.25,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"},
    "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 64,
    "tie_word_embeddings": True,
    "use_cache": True,
    "vocab_size": 4096,
}
EMBED, FINAL_NORM = "model.embed_tokens.weight", "model.norm.weight"
CHUNK = 64


def layer_prefixes(c):
    """(prefix, kind) of every decoder layer, the one of the MTP head last."""
    out = [(f"model.layers.{i}.", kind) for i, kind in enumerate(c["layer_types"])]
    return out + [("mtp.layers.0.", "full_attention")]


def shapes(c):
    """{name: shape} of all weights."""
    h, i, s, e = c["hidden_size"], c["moe_intermediate_size"], c["shared_expert_intermediate_size"], c["num_experts"]
    d, hq, hk = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
    nv, dv = c["linear_num_value_heads"], c["linear_value_head_dim"]
    vd, channels = nv * dv, 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + nv * dv
    out = {EMBED: (c["vocab_size"], h), FINAL_NORM: (h,), "mtp.fc.weight": (h, 2 * h), "mtp.norm.weight": (h,),
           "mtp.pre_fc_norm_embedding.weight": (h,), "mtp.pre_fc_norm_hidden.weight": (h,)}
    for p, kind in layer_prefixes(c):
        out |= {p + "input_layernorm.weight": (h,), p + "post_attention_layernorm.weight": (h,)}
        if kind == "linear_attention":
            p2 = p + "linear_attn."
            out |= {p2 + "in_proj_qkv.weight": (channels, h), p2 + "in_proj_z.weight": (vd, h), p2 + "in_proj_b.weight": (nv, h),
                    p2 + "in_proj_a.weight": (nv, h), p2 + "conv1d.weight": (channels, 1, c["linear_conv_kernel_dim"]),
                    p2 + "A_log": (nv,), p2 + "dt_bias": (nv,), p2 + "norm.weight": (dv,), p2 + "out_proj.weight": (h, vd)}
        else:
            p2 = p + "self_attn."
            out |= {p2 + "q_proj.weight": (2 * hq * d, h), p2 + "k_proj.weight": (hk * d, h), p2 + "v_proj.weight": (hk * d, h),
                    p2 + "o_proj.weight": (h, hq * d), p2 + "q_norm.weight": (d,), p2 + "k_norm.weight": (d,)}
        p += "mlp."
        out |= {p + "gate.weight": (e, h), p + "experts.gate_up_proj": (e, 2 * i, h), p + "experts.down_proj": (e, h, i),
                p + "shared_expert.gate_proj.weight": (s, h), p + "shared_expert.up_proj.weight": (s, h),
                p + "shared_expert.down_proj.weight": (h, s), p + "shared_expert_gate.weight": (1, h)}
    return out


def is_linear(name):
    """The matrices that TurboQuant packs at this size; embedding, routers, gates and the small projections stay."""
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight")):
        return False
    return name.endswith(("_proj.weight", "in_proj_qkv.weight", "in_proj_z.weight", "mtp.fc.weight", "experts.gate_up_proj",
                          "experts.down_proj"))


def initial_weights(c, generator):
    def normal(shape, std):
        return torch.randn(shape, generator=generator) * std

    out = {}
    for name, shape in shapes(c).items():
        if name.endswith("A_log"):
            out[name] = torch.log(torch.linspace(1, 8, shape[0]))
        elif name.endswith("dt_bias"):
            dt = torch.exp(torch.linspace(math.log(2e-3), math.log(0.1), shape[0]))
            out[name] = dt + torch.log(-torch.expm1(-dt))
        elif name.endswith("linear_attn.norm.weight"):
            out[name] = torch.ones(shape)
        elif len(shape) == 1:
            out[name] = torch.zeros(shape)
        elif name == EMBED:
            out[name] = normal(shape, 0.03)
        elif name.endswith("conv1d.weight"):
            out[name] = normal(shape, 0.3)
            out[name][:, 0, -1] += 0.7
        else:
            deep = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "experts.down_proj"))
            out[name] = normal(shape, shape[-1] ** -0.5 * (0.4 if deep else 1.0))
    return out


def norm(x, w, eps):
    """RMS norm with the weight stored as w - 1, in f32 or better."""
    return F.rms_norm(x, x.shape[-1:], eps=eps) * (1 + w.to(x.dtype))


def rope_tables(c, t, device, dtype):
    width = int(c["head_dim"] * c["partial_rotary_factor"])
    inv = c["rope_parameters"]["rope_theta"] ** (-torch.arange(0, width, 2, device=device, dtype=torch.float64) / width)
    angle = torch.arange(t, device=device, dtype=torch.float64)[:, None] * inv
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rope(x, tables):
    """x [B, H, T, d]: the first dimensions of each head turn."""
    cos, sin = tables
    n = cos.shape[-1]
    a, b, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def attention(c, w, p, x, tables, matmul):
    b, t, _ = x.shape
    d, hq, hk, eps = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"], c["rms_norm_eps"]
    q, gate = matmul(x, w[p + "q_proj.weight"]).view(b, t, hq, 2 * d).split(d, -1)
    k = matmul(x, w[p + "k_proj.weight"]).view(b, t, hk, d)
    v = matmul(x, w[p + "v_proj.weight"]).view(b, t, hk, d).transpose(1, 2)
    high = x.dtype
    q = rope(norm(q.to(high), w[p + "q_norm.weight"], eps).transpose(1, 2), tables).to(v.dtype)
    k = rope(norm(k.to(high), w[p + "k_norm.weight"], eps).transpose(1, 2), tables).to(v.dtype)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    return matmul((o * torch.sigmoid(gate)).reshape(b, t, hq * d), w[p + "o_proj.weight"])


class UnitLowerInverse(torch.autograd.Function):
    """(I - A)^-1 of strictly lower triangular A."""

    @staticmethod
    def forward(ctx, a):
        eye = torch.eye(a.shape[-1], device=a.device, dtype=a.dtype)
        inverse = torch.linalg.solve_triangular(eye - a, eye.expand_as(a), upper=False, unitriangular=True)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad):
        (inverse,) = ctx.saved_tensors
        t = inverse.transpose(-1, -2)
        return (t @ grad @ t).tril(-1)


def delta_chunked(q, k, v, g, beta):
    """The gated delta rule in chunks; q, k [B, H, T, dk], v [B, H, T, dv], g (log decay) and beta [B, H, T]; T in chunks."""
    b, h, t, dk = q.shape
    n, dv = t // CHUNK, v.shape[-1]
    q, k, v = (x.reshape(b, h, n, CHUNK, -1) for x in (q, k, v))
    g, beta = g.reshape(b, h, n, CHUNK).cumsum(-1), beta.reshape(b, h, n, CHUNK, 1)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    decay = (g[..., :, None] - g[..., None, :]).masked_fill(~lower, -torch.inf).exp()
    kt = k.transpose(-1, -2)
    inverse = UnitLowerInverse.apply((-beta * (k @ kt) * decay).tril(-1))
    grow = g.exp()[..., None]
    u, wk = (inverse @ torch.cat([beta * v, beta * grow * k], -1)).split([dv, dk], -1)
    late = ((g[..., -1:] - g).exp()[..., None] * k).transpose(-1, -2)
    eye = torch.eye(dk, device=q.device, dtype=q.dtype)
    step = grow[..., -1:, :] * eye - late @ wk  # S' = step S + add
    add = late @ u
    step, add = (x.transpose(0, 2).reshape(n, h * b, dk, -1) for x in (step, add))
    state, states = torch.zeros_like(add[0]), []
    for i in range(n):
        states.append(state)
        if i + 1 < n:
            state = torch.baddbmm(add[i], step[i], state)
    s = torch.stack(states).reshape(n, h, b, dk, dv).transpose(0, 2)
    new = u - wk @ s
    return ((grow * q) @ s + ((q @ kt) * decay) @ new).reshape(b, h, t, dv)


def delta_plain(q, k, v, g, beta):
    """The same, token by token: the definition."""
    state, out = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=q.dtype, device=q.device), []
    for i in range(q.shape[2]):
        state = state * g[:, :, i].exp()[..., None, None]
        read = torch.einsum("bhkv,bhk->bhv", state, k[:, :, i])
        delta = beta[:, :, i, None] * (v[:, :, i] - read)
        state = state + k[:, :, i, :, None] * delta[:, :, None, :]
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, :, i]))
    return torch.stack(out, 2)


def l2(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_net(c, w, p, x, matmul, delta):
    b, t, _ = x.shape
    nk, nv, dk, dv = (c["linear_" + k] for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    high = x.dtype
    u = matmul(x, w[p + "in_proj_qkv.weight"])
    taps = w[p + "conv1d.weight"][:, 0, :].to(u.dtype)
    size = taps.shape[-1]
    padded = F.pad(u, (0, 0, size - 1, 0))
    y = F.silu(sum(padded[:, i:i + t] * taps[:, i] for i in range(size))).to(high)
    q, k, v = y.split([nk * dk, nk * dk, nv * dv], -1)
    q, k = (l2(z.view(b, t, nk, dk)).transpose(1, 2).repeat_interleave(nv // nk, 1) for z in (q, k))
    v = v.view(b, t, nv, dv).transpose(1, 2)
    beta = torch.sigmoid(matmul(x, w[p + "in_proj_b.weight"]).to(high)).transpose(1, 2)
    a = matmul(x, w[p + "in_proj_a.weight"]).to(high)
    g = (-w[p + "A_log"].to(high).exp() * F.softplus(a + w[p + "dt_bias"].to(high))).transpose(1, 2)
    o = delta(q * dk ** -0.5, k, v, g, beta).transpose(1, 2)
    z = matmul(x, w[p + "in_proj_z.weight"]).view(b, t, nv, dv)
    o = F.rms_norm(o, (dv,), eps=c["rms_norm_eps"]) * w[p + "norm.weight"].to(high) * F.silu(z.to(high))
    return matmul(o.reshape(b, t, nv * dv), w[p + "out_proj.weight"])


def experts(c, w, p, x, matmul, balance):
    """All experts for every token, those not chosen with weight 0: at this width one wide product is the fastest way."""
    shape, x = x.shape, x.reshape(-1, x.shape[-1])
    e, i, k = c["num_experts"], c["moe_intermediate_size"], c["num_experts_per_tok"]
    p_all = torch.softmax(x @ w[p + "gate.weight"].to(x.dtype).T, -1)
    top, chosen = p_all.topk(k, -1)
    share = torch.zeros_like(p_all).scatter(-1, chosen, top / top.sum(-1, keepdim=True))
    if balance is not None:
        balance.append(e / k * ((share > 0).to(x.dtype).mean(0) * p_all.mean(0)).sum())
    gate, up = (matmul(x, m.reshape(e * i, -1)) for m in w[p + "experts.gate_up_proj"].split(i, 1))
    inner = (F.silu(gate) * up).view(-1, e, i) * share[..., None].to(gate.dtype)
    y = matmul(inner.view(-1, e * i), w[p + "experts.down_proj"].permute(1, 0, 2).reshape(-1, e * i))
    s = p + "shared_expert."
    inner = F.silu(matmul(x, w[s + "gate_proj.weight"])) * matmul(x, w[s + "up_proj.weight"])
    weight = torch.sigmoid(matmul(x, w[p + "shared_expert_gate.weight"]))
    return (y + weight * matmul(inner, w[s + "down_proj.weight"])).view(shape)


def block(c, w, p, kind, x, tables, matmul, delta, balance):
    """One decoder layer; x, the residual stream, in f32 or better."""
    eps = c["rms_norm_eps"]
    h = norm(x, w[p + "input_layernorm.weight"], eps)
    if kind == "linear_attention":
        x = x + delta_net(c, w, p + "linear_attn.", h, matmul, delta)
    else:
        x = x + attention(c, w, p + "self_attn.", h, tables, matmul)
    h = norm(x, w[p + "post_attention_layernorm.weight"], eps)
    return x + experts(c, w, p + "mlp.", h, matmul, balance)


def hidden_states(c, w, ids, compute, delta=delta_chunked, balance=None, mtp=True):
    """What the head eats, [B, T, h]: row t predicts token t + 1; and of the MTP head, [B, T - 1, h]: row t predicts t + 2.
    `compute`: the type of the matrix products; everything else in f32 (f64 with f64)."""
    t = ids.shape[1]
    high = torch.float64 if compute == torch.float64 else torch.float32
    if delta is delta_chunked and t % CHUNK:
        ids = F.pad(ids, (0, CHUNK - t % CHUNK))
    tables = rope_tables(c, ids.shape[1], ids.device, high)

    def matmul(x, m):
        return x.to(compute) @ m.to(compute).T

    table = w[EMBED]
    x = F.embedding(ids, table).to(high)
    for p, kind in layer_prefixes(c)[:-1]:
        x = block(c, w, p, kind, x, tables, matmul, delta, balance)
    x = norm(x, w[FINAL_NORM], c["rms_norm_eps"])
    if not mtp:
        return x[:, :t], None
    both = [norm(F.embedding(ids[:, 1:], table).to(high), w["mtp.pre_fc_norm_embedding.weight"], c["rms_norm_eps"]),
            norm(x[:, :-1], w["mtp.pre_fc_norm_hidden.weight"], c["rms_norm_eps"])]
    y = matmul(torch.cat(both, -1), w["mtp.fc.weight"]).to(high)
    tables = tuple(z[:-1] for z in tables)
    y = block(c, w, "mtp.layers.0.", "full_attention", y, tables, matmul, delta, balance)
    return x[:, :t], norm(y, w["mtp.norm.weight"], c["rms_norm_eps"])[:, :t - 1]


def logits(w, x, compute):
    return x.to(compute) @ w[EMBED].to(compute).T
