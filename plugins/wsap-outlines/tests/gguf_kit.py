"""Writes GGUF files of the tiny model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def write(file: Path, model: Any, tokenizer: Any, *, architecture: str = "llama") -> Path:
    """Write a model as llama.cpp's converter does, in the names and order of weights that the format has."""
    gguf = pytest.importorskip("gguf", reason="needs gguf: `nox -s models` runs these")
    config, weights = model.config, {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    padded = [*words, *(f"<|spare-{i}|>" for i in range(config.vocab_size - len(words)))]
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(padded)
    writer.add_token_types([3 if word.startswith("<|") else 1 for word in padded])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in weights.items():
        stem, dot, kind = name.rpartition(".")
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:  # the format's order of the rows that turn together
                rows, columns = weight.shape
                weight = weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
        writer.add_tensor(f"{names.get_name(stem)}{dot}{kind}", weight.copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
