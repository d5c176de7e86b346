"""A tiny model with random weights and a freshly trained tokenizer, for tests; nothing is downloaded.

Under a constraint even a random model must give well-formed replies.
"""

from __future__ import annotations

from typing import Any

TEXT = (
    "### system\nYou are an agent playing Crafter. Gather wood, place a table, make a pickaxe, and survive the night.\n"
    '### assistant\n{"action": "move_left", "params": {}, "reasoning": "There is a tree to the west of me."}\n'
    "<thinking>\nI need to see that will.\n<check_will>Player 3</check_will>\n<observation>Player 3's will says: "
    "“N1 heal Player 5.”</observation>\nPlayer 4 is lying.\n</thinking>\n<speak>Player 4 is lying.</speak>\n"
)
CHAT = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "<|start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""A chat template like Qwen's."""


def tiny_tokenizer(size: int = 420, *, template: str | None = CHAT) -> Any:
    """Return a byte-level BPE tokenizer trained on `TEXT`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<|end|>", "<|start|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    special = {"eos_token": "<|end|>", "bos_token": "<|start|>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, **special)
    tokenizer.chat_template = template
    return tokenizer


def tiny_model(tokenizer: Any, kind: str = "llama", *, context: int = 16_384, spare: int = 20) -> Any:
    """Return a model with constant random weights, whose output is wider than the vocabulary, as is common."""
    import torch
    import transformers

    torch.manual_seed(5)
    made = {"llama": "Llama", "qwen3": "Qwen3", "mistral": "Mistral"}[kind]
    more = {"head_dim": 16} if kind == "qwen3" else {"sliding_window": 48} if kind == "mistral" else {}
    config = getattr(transformers, f"{made}Config")(
        vocab_size=len(tokenizer) + spare,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=None,
        # Far from uniform, so that a wrong cache or position changes the logits.
        initializer_range=0.4,
        **more,
    )
    return getattr(transformers, f"{made}ForCausalLM")(config).eval()
