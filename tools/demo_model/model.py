"""The demo model in JAX (llama layout), its initial weights, and the noise that stands for 3-bit TurboQuant in training."""

import jax
import jax.numpy as jnp
import numpy as np

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "dtype": "bfloat16",
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "intermediate_size": 384,
    "max_position_embeddings": 1024,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "use_cache": True,
    "vocab_size": 1536,
}

E, F = CONFIG["hidden_size"], CONFIG["intermediate_size"]
H, G, D = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], CONFIG["head_dim"]
LINEARS = {  # name: (outputs, inputs), as in the checkpoint
    "self_attn.q_proj": (H * D, E),
    "self_attn.k_proj": (G * D, E),
    "self_attn.v_proj": (G * D, E),
    "self_attn.o_proj": (E, H * D),
    "mlp.gate_proj": (F, E),
    "mlp.up_proj": (F, E),
    "mlp.down_proj": (E, F),
}


def layer_name(layer, part):
    return f"model.layers.{layer}.{part}.weight"


def is_linear(name):
    """True for the matrices that TurboQuant packs; the tied embedding and the norms stay as they are."""
    return name.endswith("_proj.weight")


def initial_weights(seed):
    rng = np.random.default_rng(seed)

    def normal(shape, std):
        return (std * rng.standard_normal(shape)).astype(np.float32)

    weights = {"model.embed_tokens.weight": normal((CONFIG["vocab_size"], E), 0.03)}
    for i in range(CONFIG["num_hidden_layers"]):
        for part, shape in LINEARS.items():
            deep = part.endswith(("o_proj", "down_proj"))
            weights[layer_name(i, part)] = normal(shape, shape[1] ** -0.5 * (0.35 if deep else 1.0))
        for part in ("input_layernorm", "post_attention_layernorm"):
            weights[layer_name(i, part)] = np.ones(E, np.float32)
    weights["model.norm.weight"] = np.ones(E, np.float32)
    return weights


def rms_norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + CONFIG["rms_norm_eps"]) * w


def rope_tables(t):
    """Cosines and sines [1, t, D/2] of the positions."""
    inv_freq = CONFIG["rope_theta"] ** (-np.arange(0, D, 2) / D)
    angle = np.arange(t)[None, :, None] * inv_freq
    return jnp.asarray(np.cos(angle), jnp.float32), jnp.asarray(np.sin(angle), jnp.float32)


def rope(x, tables):
    """Rotates the halves of each head; x [heads, T, D]."""
    (c, s), a, b = tables, x[..., : D // 2], x[..., D // 2:]
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


def attention(x, w, layer, bias, tables):
    b, t, _ = x.shape

    def project(part, heads):
        """[B * H, T, D]; key and value heads are repeated, which the CPU multiplies fastest."""
        y = (x.reshape(b * t, E) @ w[layer_name(layer, part)].T).reshape(b, t, heads, D).transpose(0, 2, 1, 3)
        return jnp.repeat(y, H // heads, axis=1).reshape(b * H, t, D)

    q = rope(project("self_attn.q_proj", H), tables)
    k = rope(project("self_attn.k_proj", G), tables)
    scores = (q * D ** -0.5) @ k.transpose(0, 2, 1)
    p = jax.nn.softmax(scores.reshape(b, H, t, t) + bias, -1).reshape(b * H, t, t)
    out = (p @ project("self_attn.v_proj", G)).reshape(b, H, t, D).transpose(0, 2, 1, 3)
    return out.reshape(b * t, H * D) @ w[layer_name(layer, "self_attn.o_proj")].T


def forward(w, ids, segments):
    """Logits [B, T, V]. Tokens see the earlier tokens of their own segment; positions may start anywhere, since
    rotary positions are relative."""
    b, t = ids.shape
    visible = jnp.tril(jnp.ones((t, t), bool))[None] & (segments[:, :, None] == segments[:, None, :])
    bias, tables = jnp.where(visible, 0.0, -1e9)[:, None], rope_tables(t)
    x = w["model.embed_tokens.weight"][ids].reshape(b * t, E)
    for i in range(CONFIG["num_hidden_layers"]):
        h = rms_norm(x, w[layer_name(i, "input_layernorm")]).reshape(b, t, E)
        x = x + attention(h, w, i, bias, tables)
        h = rms_norm(x, w[layer_name(i, "post_attention_layernorm")])
        gate = jax.nn.silu(h @ w[layer_name(i, "mlp.gate_proj")].T)
        x = x + (gate * (h @ w[layer_name(i, "mlp.up_proj")].T)) @ w[layer_name(i, "mlp.down_proj")].T
    return (rms_norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T).reshape(b, t, -1)


def noise_pool(key):
    """Gaussian numbers that every step cuts its noise from at random places: drawing fresh ones costs too much."""
    return jax.random.normal(key, (1 << 22,))


def add_noise(w, pool, key, relative):
    """Adds Gaussian noise of `relative` times the root mean square to every linear matrix: the error that rotated
    3-bit codes leave (0.183), seen from the unrotated side."""
    names = sorted(name for name in w if is_linear(name))
    starts = jax.random.randint(key, (len(names),), 0, pool.size - H * D * F)
    out = dict(w)
    for name, start in zip(names, starts):
        rms = jax.lax.stop_gradient(jnp.sqrt(jnp.mean(w[name] ** 2)))
        noise = jax.lax.dynamic_slice(pool, (start,), (w[name].size,)).reshape(w[name].shape)
        out[name] = w[name] + relative * rms * noise
    return out


def loss(w, batch, pool, key, relative):
    """Mean cross entropy, weighted per target token."""
    ids, segments, target_weights = batch
    logits = forward(add_noise(w, pool, key, relative), ids[:, :-1], segments[:, :-1])
    log_p = jax.nn.log_softmax(logits, -1)
    picked = jnp.take_along_axis(log_p, ids[:, 1:, None], -1)[..., 0]
    weight = target_weights[:, 1:]
    return -(picked * weight).sum() / weight.sum()
