"""TRL's own trainer trains on a game: two steps of a tiny model, without a GPU and without a download."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

trl = pytest.importorskip("trl", reason="it is in the stage of models")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from wsap_trainers.trl import factory  # noqa: E402  after what it needs

CALL = '<tool_call>\n{"name": "walk", "arguments": {}}\n</tool_call><|im_end|>'
GAME = '''"""A walk."""
from __future__ import annotations
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation


class Walk:
    game_description = "Walk three steps."
    action_space = ActionSpace([ActionDef("walk", "Take a step")])

    def reset(self, seed: int | None = None) -> Observation:
        self.step = 0
        return self.observe()

    def observe(self) -> Observation:
        return Observation(status={"steps": self.step}, step=self.step)

    def act(self, action: Action) -> ActionResult:
        self.step += 1
        return ActionResult(True, "A step.", 1.0, (), self.step == 3, self.observe())
'''


def tokenizer() -> Any:
    """A tokenizer with the chat template of Qwen3, whose call of a tool is a handful of tokens."""
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>"]
    raw.train_from_iterator(
        [CALL * 20],
        tokenizers.trainers.BpeTrainer(
            vocab_size=400, special_tokens=special[:3], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )  # fmt: skip
    raw.add_tokens(special[3:])
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = (files("trl") / "chat_templates" / "qwen3.jinja").read_text("utf-8")
    return made


def model(words: Any, environment: Any) -> Any:
    """A tiny model with random weights that has learnt one thing: to call the tool after a prompt of the game."""
    import torch

    torch.manual_seed(5)
    torch.set_num_threads(1)
    made = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, max_position_embeddings=4096, eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id,
        )
    )  # fmt: skip
    prompt = words.apply_chat_template(
        [{"role": "user", "content": f"Go.{environment.reset(seed=0)}"}],
        tools=[transformers.utils.get_json_schema(environment.walk)], add_generation_prompt=True, tokenize=False,
    )  # fmt: skip
    start, wanted = words(prompt).input_ids, words(CALL).input_ids
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    rows = [[*start, *wanted]]
    labels = [[*([-100] * len(start)), *wanted]]
    for _ in range(60):
        loss = made(input_ids=torch.tensor(rows), labels=torch.tensor(labels)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return made


@pytest.mark.filterwarnings("ignore")  # of theirs about each other
def test_two_steps_of_their_trainer_play_and_pay(tmp_path: Path) -> None:
    game = tmp_path / "walk.py"
    game.write_text(GAME, encoding="utf-8")
    words, create = tokenizer(), factory(f"{game}:Walk")
    trainer = trl.GRPOTrainer(
        model=model(words, create()),
        processing_class=words,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, num_generations=2,
            max_completion_length=160, max_tool_calling_iterations=2, report_to=[], use_cpu=True, logging_steps=1,
            save_strategy="no", disable_tqdm=True,
        ),
        train_dataset=datasets.Dataset.from_list(
            [{"prompt": [{"role": "user", "content": "Go."}], "seed": 1_000_000 + n} for n in range(4)]
        ),
        environment_factory=create,
    )  # fmt: skip
    trainer.train()
    logged = [row for row in trainer.state.log_history if "reward" in row]
    assert len(logged) == 2
    assert max(row["reward"] for row in logged) > 0, logged
    assert max(row["tools/call_frequency"] for row in logged) > 0, logged
