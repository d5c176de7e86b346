"""Measure the time to the next token after a tool call, in process, with and without the key-value cache.

    python benchmarks/bench_resume.py [--size small|qwen3-8b] [--contexts 500,2000,8000] [--rounds 9]
                                      [--threads 1] [--json]

A model with random weights reads a prompt and writes 16 tokens, like a turn up to a tool's closing tag; then the tool's
result (about 40 tokens) is appended, and the time until the next token is measured: rendering, tokenizing, matching the
cache, computing new tokens, and sampling. The same is measured with an empty cache. Each round has a different result;
the median counts. Goal: with the cache, the time at 8,000 tokens is at most 1.5 times that at 500.

`small` has 60 million weights, for a CPU; `qwen3-8b` has the size of Qwen3-8B in bfloat16, for a GPU with 20 GB free.
Besides this repository they need only torch and transformers:

    PYTHONPATH=.:plugins/wsap-outlines python benchmarks/bench_resume.py --size qwen3-8b
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from wsap_core.seams.model import Message, Request, Sampling
from wsap_llm.reply.tags import OPENING, continue_text
from wsap_outlines.generate import Generator
from wsap_outlines.models.loading import adopt
from wsap_outlines.options import Options
from wsap_outlines.testing import tiny_tokenizer

MOST = 1.5
"""Limit of the time at the longest context divided by that at the shortest."""
SIZES: dict[str, dict[str, Any]] = {
    # In the larger model's proportions: at 8,000 tokens, attention takes about a third of the time of the weights.
    "small": {
        "vocab_size": 4_096, "hidden_size": 1_024, "intermediate_size": 4_096, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 64,
    },
    # As in the model's published configuration.
    "qwen3-8b": {
        "vocab_size": 151_936, "hidden_size": 4_096, "intermediate_size": 12_288, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rope_theta": 1_000_000.0,
    },
}  # fmt: skip
GREEDY = Sampling(1, temperature=0, top_p=None)


def make(size: str) -> tuple[Any, Any]:
    """Return a model with random weights, and a tokenizer for the benchmark's text."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    tokenizer = tiny_tokenizer()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if size == "qwen3-8b" and device == "cpu":
        print("Warning: on a CPU a model of this size takes minutes per round and 16 GB.", file=sys.stderr)
    config = Qwen3Config(**SIZES[size], max_position_embeddings=40_960, eos_token_id=tokenizer.eos_token_id)
    torch.manual_seed(1)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16 if size == "qwen3-8b" else torch.float32
        ).eval()
    with torch.no_grad():
        # Only whole words can be chosen: with random weights a model would write partial characters, which do not
        # survive the conversion to text.
        head = model.get_output_embeddings().weight
        words = [i for i in range(len(tokenizer)) if tokenizer.decode([i]).strip().isalpha()]
        mute = torch.ones(head.shape[0], dtype=torch.bool, device=head.device)
        mute[words] = False
        head[mute] = 0
    return model, tokenizer


def prompt_of(tokenizer: Any, tokens: int) -> tuple[Message, ...]:
    """Return messages of about that many tokens."""
    text = " ".join(f"Player {i % 15} says: Player {i % 7} is lying, I need to see that will." for i in range(tokens))
    ids = tokenizer.encode(text, add_special_tokens=False)[: tokens - 40]
    return (Message("system", "You are Player 7."), Message("user", tokenizer.decode(ids)))


def run(generator: Generator, request: Request) -> str:
    """Return the whole reply."""
    return generator.reply(request, threading.Event()).text


def timed(generator: Generator, request: Request) -> float:
    """Return the milliseconds until one token."""
    began = time.perf_counter()
    run(generator, request)
    return (time.perf_counter() - began) * 1000


def measure(generator: Generator, tokens: int, rounds: int) -> dict[str, Any]:
    """Return the medians at one context length."""
    request = Request(prompt_of(generator.loaded.tokenizer, tokens), OPENING, sampling=replace(GREEDY, max_tokens=16))
    began = time.perf_counter()
    so_far = OPENING + run(generator, request)
    first = (time.perf_counter() - began) * 1000
    found: dict[str, list[float]] = {"kept": [], "recomputed": []}
    new = context = 0
    for number in range(-1, rounds):
        result = f"Player 3's will, page {number}: N1 heal Player 5. N2 heal Player 1."
        after = replace(request, prefill=continue_text(so_far, result), sampling=GREEDY)
        kept = timed(generator, after)
        work = generator.work
        assert work is not None
        if number >= 0:  # the first is for warming up
            found["kept"].append(kept)
            context, new = work.prompt, work.prompt - work.reused
        if 0 <= number < max(3, rounds // 3):
            generator.clear()
            found["recomputed"].append(timed(generator, after))
            # What the turn had before the call is in the cache again, as it would be.
            generator.clear()
            run(generator, request)
    kept, recomputed = (statistics.median(found[kind]) for kind in ("kept", "recomputed"))
    return {
        "context": context, "new tokens": new, "kept ms": round(kept, 2), "recomputed ms": round(recomputed, 2),
        "times faster": round(recomputed / kept, 1), "first reply ms": round(first, 1),
    }  # fmt: skip


def main() -> int:
    """Measure and print a table; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--contexts", default="500,2000,8000")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    model, tokenizer = make(given.size)
    generator = Generator(adopt(model, tokenizer, Options()), Options())
    rows = []
    for tokens in map(int, given.contexts.split(",")):
        generator.clear()
        rows.append(measure(generator, tokens, given.rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    ratio = rows[-1]["kept ms"] / rows[0]["kept ms"]
    place = torch.cuda.get_device_name() if model.device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    weights = sum(part.numel() for part in model.parameters())
    summary = {"model": given.size, "weights": weights, "device": place, "ratio": round(ratio, 2), "rows": rows}
    if given.json:
        print(json.dumps(summary, indent=2))
    else:
        print(f"{given.size}, {weights / 1e6:,.0f} million weights, {place}")
        for row in rows:
            print("  ".join(f"{key} {value}" for key, value in row.items()))
        print(f"longest to shortest context, cache kept: {ratio:.2f} times (goal: at most {MOST})")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
