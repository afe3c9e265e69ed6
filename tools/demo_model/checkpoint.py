"""Reads and writes the demo model in the Hugging Face layout."""

import json

import torch
from safetensors.torch import load_file, save_file

import chat
from model import CONFIG, layer_prefixes

EXPERT_PARTS = ("gate_proj", "up_proj", "down_proj")


def unstack(weights, c):
    """The stacks of experts as one tensor per expert and part, bf16 (A_log f32)."""
    out = {k: v.detach().to("cpu", torch.float32 if k.endswith("A_log") else torch.bfloat16).contiguous() for k, v in weights.items()}
    for prefix, _ in layer_prefixes(c):
        p = prefix + "mlp.experts."
        gates, ups = out.pop(p + "gate_up_proj").split(c["moe_intermediate_size"], 1)
        for part, stack in zip(EXPERT_PARTS, (gates, ups, out.pop(p + "down_proj"))):
            for i, w in enumerate(stack):
                out[f"{p}{i}.{part}.weight"] = w.contiguous()
    return out


def load(folder):
    """(config, weights in f32 with stacked experts)"""
    c = json.loads((folder / "config.json").read_text())
    w = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    for prefix, _ in layer_prefixes(c):
        p = prefix + "mlp.experts."
        gates, ups, downs = ([w.pop(f"{p}{i}.{part}.weight") for i in range(c["num_experts"])] for part in EXPERT_PARTS)
        w[p + "gate_up_proj"] = torch.stack([torch.cat(pair) for pair in zip(gates, ups)])
        w[p + "down_proj"] = torch.stack(downs)
    return c, w


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def save(folder, weights, tokenizer, c=CONFIG):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(unstack(weights, c), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", c)
    write_json(folder / "generation_config.json", {"do_sample": False, "eos_token_id": [chat.IM_END, chat.END_OF_TEXT],
                                                   "pad_token_id": chat.END_OF_TEXT})
    tokenizer.save(str(folder / "tokenizer.json"))
    added = {str(i): {"content": s, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                      "special": i <= chat.IM_END} for i, s in enumerate(chat.SPECIAL)}
    write_json(folder / "tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added, "bos_token": None,
        "clean_up_tokenization_spaces": False, "eos_token": chat.SPECIAL[chat.IM_END], "errors": "replace",
        "model_max_length": c["max_position_embeddings"], "pad_token": chat.SPECIAL[chat.END_OF_TEXT],
        "split_special_tokens": False, "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None})
    (folder / "chat_template.jinja").write_text(chat.TEMPLATE, encoding="utf-8")
