#!/usr/bin/env python3
"""Writes a large checkpoint of random bf16 weights in the shapes of Qwen3-4B's layers, to measure convert with.

  tools/big_checkpoint.py FOLDER                 3 shards of about 1 GB
  tools/big_checkpoint.py FOLDER --shards 8
  tools/big_checkpoint.py FOLDER --shards 2 --layers 4       of 4 layers each
"""

import argparse
import json
import os
import pathlib
import struct

HIDDEN, FFN, HEADS, KV_HEADS, DIM, VOCAB = 2560, 9728, 32, 8, 128, 32000
LAYERS_PER_SHARD = 5  # 1.01 GB


def layer_tensors(layer):
    prefix = f"model.layers.{layer}."
    query, key = HEADS * DIM, KV_HEADS * DIM
    return [
        (prefix + "input_layernorm.weight", [HIDDEN]),
        (prefix + "self_attn.q_proj.weight", [query, HIDDEN]),
        (prefix + "self_attn.k_proj.weight", [key, HIDDEN]),
        (prefix + "self_attn.v_proj.weight", [key, HIDDEN]),
        (prefix + "self_attn.o_proj.weight", [HIDDEN, query]),
        (prefix + "self_attn.q_norm.weight", [DIM]),
        (prefix + "self_attn.k_norm.weight", [DIM]),
        (prefix + "post_attention_layernorm.weight", [HIDDEN]),
        (prefix + "mlp.gate_proj.weight", [FFN, HIDDEN]),
        (prefix + "mlp.up_proj.weight", [FFN, HIDDEN]),
        (prefix + "mlp.down_proj.weight", [HIDDEN, FFN]),
    ]


def random_block(values):
    """bf16 values of magnitude 2^-8 to 2^-6: a random low byte, a high byte out of four."""
    table = bytes((0x3C, 0xBC, 0x3B, 0xBB)[i & 3] for i in range(256))
    block = bytearray(2 * values)
    block[0::2] = os.urandom(values)
    block[1::2] = os.urandom(values).translate(table)
    return bytes(block)


def write_shard(path, tensors, block):
    header, offset = {}, 0
    for name, shape in tensors:
        size = 2
        for side in shape:
            size *= side
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while offset > 0:
            offset -= file.write(block[: min(offset, len(block))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--layers", type=int, default=LAYERS_PER_SHARD, help="layers of a shard")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    layers = arguments.shards * arguments.layers
    config = {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": VOCAB, "hidden_size": HIDDEN,
        "num_hidden_layers": layers, "intermediate_size": FFN, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": DIM, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "hidden_act": "silu", "max_position_embeddings": 4096, "tie_word_embeddings": True,
        "attention_bias": False, "torch_dtype": "bfloat16",
    }
    (arguments.folder / "config.json").write_text(json.dumps(config, indent=1))
    block = random_block(1 << 24)
    shard_of = {}
    for shard in range(arguments.shards):
        name = f"model-{shard + 1:05}-of-{arguments.shards:05}.safetensors"
        tensors = [("model.embed_tokens.weight", [VOCAB, HIDDEN]), ("model.norm.weight", [HIDDEN])] if shard == 0 else []
        for layer in range(shard * arguments.layers, (shard + 1) * arguments.layers):
            tensors += layer_tensors(layer)
        write_shard(arguments.folder / name, tensors, block)
        shard_of.update({tensor: name for tensor, _ in tensors})
    index = {"metadata": {}, "weight_map": shard_of}
    (arguments.folder / "model.safetensors.index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main()
