from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_core.seams.model import Constraint, JsonConstraint, RegexConstraint
from wsap_core.seams.model_errors import ConstraintError
from wsap_llm.reply.schema import reply_schema
from wsap_llm.reply.tags import TagLimits, TagTurn
from wsap_outlines.guiding.guides import Guide, Guides, Vocabulary

pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")

ACTIONS = (
    ActionDef("wait", "Do nothing."),
    ActionDef("look", "Look around."),
    ActionDef("give", "Give something.", (ParamDef("count", "1-12"), ParamDef("to", "string"))),
    ActionDef("speak", "Say it.", (ParamDef("text", "string"),)),
)
TOOLS = (Tool("check_will", "Read a will.", (ParamDef("player", "string"),)),)
SHORT = TagLimits(thinking=30, argument=10, final=20)
CONSTRAINTS: dict[str, Constraint] = {
    "json": JsonConstraint(reply_schema(ACTIONS, TOOLS, reasoning_limit=30, text_limit=20)),
    "tags": RegexConstraint(TagTurn(TOOLS, ACTIONS, limits=SHORT).pattern()),
    "numbers": RegexConstraint(r"-?[1-9][0-9]{0,3}(?:\.[0-9]{1,2})?"),
}


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Any) -> Vocabulary:
    return Vocabulary(tokenizer, len(tokenizer) + 20, [tokenizer.eos_token_id])


def tokens(guide: Guide) -> set[int]:
    return set(np.unpackbits(guide.mask().view(np.uint8), bitorder="little").nonzero()[0].tolist())


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_two_engines_allow_the_same_texts_token_by_token(vocabulary: Vocabulary, name: str) -> None:
    ours, reference = Guides(vocabulary), Guides(vocabulary, "outlines-core")
    chooser = random.Random(3)
    compared = 0
    for _ in range(15):
        one, other = ours.guide(CONSTRAINTS[name]), reference.guide(CONSTRAINTS[name])
        while True:
            assert one.accepting == other.accepting
            assert not one.complete or other.accepting
            if one.complete:
                break
            allowed, also = tokens(one), tokens(other)
            compared += 1
            # A text that can't be another has one spelling with the one, and several with the other,
            # which leaves out what could go on behind an end by several characters at least.
            assert allowed == also or (len(allowed) == 1 and allowed < also) or (one.accepting and also < allowed)
            token = chooser.choice(sorted(allowed & also))
            if token in vocabulary.ends:
                break
            one.advance(token)
            other.advance(token)
    assert compared > 60


@pytest.mark.parametrize("engine", ["llguidance", "outlines-core"])
def test_the_end_is_allowed_only_where_the_constraint_is_met(vocabulary: Vocabulary, engine: Any) -> None:
    guide = Guides(vocabulary, engine).guide(RegexConstraint("ab{0,2}"))
    by_bytes = vocabulary.bytes_of()
    [end] = vocabulary.ends
    assert end not in tokens(guide)
    for byte, (accepting, complete) in {b"a": (True, False), b"b": (True, False)}.items():
        guide.advance(by_bytes[byte][0])
        assert (guide.accepting, guide.complete, end in tokens(guide)) == (accepting, complete, True)
    guide.advance(by_bytes[b"b"][0])
    assert (guide.accepting, guide.complete) == (True, True)


def test_no_token_of_the_template_is_ever_allowed_in_a_text(vocabulary: Vocabulary, tokenizer: Any) -> None:
    guide = Guides(vocabulary).guide(RegexConstraint(r"(?:.|\n){1,50}"))
    assert tokenizer.convert_tokens_to_ids("<|start|>") not in tokens(guide)
    # Nor a number of the model's output that stands for nothing.
    assert max(tokens(guide)) < len(tokenizer)


def test_a_schema_beyond_the_kernels_own_is_kept_by_the_engine(vocabulary: Vocabulary, tokenizer: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[a-c]{2}$"}, "n": {"$ref": "#/$defs/n"}},
        "required": ["code", "n"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer", "minimum": 3, "maximum": 8}},
    }
    guides, chooser = Guides(vocabulary), random.Random(1)
    for _ in range(20):
        guide, said = guides.guide(JsonConstraint(schema)), []
        while not guide.complete:
            said.append(chooser.choice(sorted(tokens(guide))))
            guide.advance(said[-1])
        jsonschema.validate(json.loads(tokenizer.decode(said, skip_special_tokens=True)), schema)


@pytest.mark.parametrize("engine", ["llguidance", "outlines-core"])
@pytest.mark.parametrize("pattern", ["(unclosed", "(?=ahead)a"])
def test_an_expression_that_an_engine_has_not_is_refused(vocabulary: Vocabulary, engine: Any, pattern: str) -> None:
    with pytest.raises(ConstraintError, match=engine):
        Guides(vocabulary, engine).guide(RegexConstraint(pattern))
