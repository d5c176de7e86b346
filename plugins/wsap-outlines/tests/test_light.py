from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wsap_core import Context
from wsap_core.errors import ConfigError, UsageError
from wsap_core.factories import build
from wsap_core.protocol import ActionDef, ActionSpace
from wsap_core.seams.model import Backend, JsonConstraint, RegexConstraint
from wsap_core.seams.model_errors import BadRequestError, ConstraintError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_outlines.guiding.guides import most_bytes, pattern_of
from wsap_outlines.guiding.lengths import most_characters
from wsap_outlines.options import Options, read_context
from wsap_outlines.plugin import wsap_backends


@pytest.mark.parametrize("model", ["some/model", "vllm:some/model"])
def test_a_backend_is_made_without_loading_torch_or_transformers(model: str) -> None:
    code = (
        "import sys\nfrom wsap_core import Context\nfrom wsap_core.factories import build\n"
        "from wsap_outlines.plugin import wsap_backends\n[spec] = wsap_backends()\n"
        f"backend = build(spec.factory, Context(config={{'model': {model!r}}}))\nprint(backend.model)\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'numpy', 'vllm', 'llguidance', 'outlines_core'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, f"outlines/{model}"), done.stderr


def test_what_is_made_is_a_backend_that_tells_what_it_can_do() -> None:
    [spec] = wsap_backends()
    backend = build(spec.factory, Context(config={"model": "some/model", "context": 512}))
    assert isinstance(backend, Backend)
    abilities = backend.abilities
    assert abilities.json_schema
    assert abilities.regex
    assert abilities.prefill
    assert abilities.resume
    assert abilities.context == 512
    assert abilities.images is False  # so that an agent which was asked to look refuses to begin


def test_a_game_with_pictures_is_refused_in_a_sentence() -> None:
    [spec] = wsap_backends()
    backend = build(spec.factory, Context(config={"model": "some/model"}))
    agent = LLMAgent(backend, LLMOptions("Crafter", pictures=1))
    with pytest.raises(UsageError, match="outlines/some/model does not accept images; omit --pictures"):
        asyncio.run(agent.initialize("A world.", ActionSpace([ActionDef("noop", "Do nothing")])))


@pytest.mark.parametrize(
    ("config", "words"),
    [({"model": "m", "engine": "magic"}, "llguidance, outlines-core"), ({"model": "m", "context": "few"}, "context"),
     ({"model": "m", "threads": 0}, "threads"), ({"model": "m", "dtype": "int3"}, "bfloat16")],
)  # fmt: skip
def test_an_option_with_a_wrong_value_is_refused_by_name(config: dict[str, object], words: str) -> None:
    [spec] = wsap_backends()
    with pytest.raises(ConfigError, match=words):
        build(spec.factory, Context(config=config))


@pytest.mark.parametrize("config", [{}, {"model": ""}, {"model": "vllm:"}])
def test_an_address_without_a_model_is_refused_with_an_example(config: dict[str, object]) -> None:
    [spec] = wsap_backends()
    with pytest.raises(BadRequestError, match="outlines/Qwen"):
        build(spec.factory, Context(config=config))


def test_options_given_as_text_are_read_as_numbers() -> None:
    assert Options.read({"context": "2048", "threads": "1"}) == Options(context=2048, threads=1)


def test_a_folders_context_is_known_before_the_model_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path
    assert read_context(str(folder)) is None
    (folder / "config.json").write_text('{"text_config": {"max_position_embeddings": 4096}}', encoding="utf-8")
    assert read_context(str(folder)) == 4096
    (folder / "config.json").write_text("[", encoding="utf-8")
    assert read_context(str(folder)) is None


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("", 0),
        ("abc", 3),
        ("a|bcd|", 3),
        (r"(?:a{2,5}|[^<\]\x00-\x1f]{0,300})x", 301),
        (r"\{\"a\": (?:true|false)\}", 12),
        (r"[]x]{3}\.[\n\t]?", 5),
        (r"(?:(?:ab){1,3}c){2}", 14),
        ("a*b", None),
        ("(?:|a)+", None),
        ("x{2,}", None),
        ("(?:){3,}", 0),
    ],
)
def test_the_longest_match_of_an_expression_is_known(pattern: str, longest: int | None) -> None:
    assert most_characters(pattern) == longest
    assert most_bytes(pattern) == (None if longest is None else 4 * longest)


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(ConstraintError, match="not a regular expression"):
        most_bytes("(a")


def test_a_schema_that_says_more_than_the_kernel_reads_is_left_to_the_engine() -> None:
    text = {"type": "string", "maxLength": 3}
    assert pattern_of(RegexConstraint("a+")) == "a+"
    pattern = pattern_of(JsonConstraint({"type": "object", "properties": {"a": text}, "required": ["a"]}))
    assert pattern is not None
    assert re.fullmatch(pattern, '{"a": "x"}')
    assert pattern_of(JsonConstraint({"type": "object", "properties": {"a": {**text, "pattern": "x+"}}})) is None
    assert pattern_of(JsonConstraint({"type": "string"})) is None
    assert pattern_of(JsonConstraint({"$ref": "#/$defs/a", "$defs": {"a": text}})) is None
