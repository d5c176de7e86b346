"""Skins: nothing that a model reads contains a word of the game's vocabulary."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.host import PluginHost
from wsap_core.seams.constraints import CallConstraint, ChooseConstraint, FunctionDef, JsonConstraint
from wsap_core.seams.model import Abilities, Draft, FunctionCall, Message, Reply, Request
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.skin import Lexicon, Skinned

WORDS = ("wood", "stone", "berry", "cow", "glass", "axe")


def lexicon(seed: str = "7") -> Lexicon:
    return Lexicon.drawn(WORDS, seed)


@given(st.lists(st.sampled_from([*WORDS, "Woods", "BERRIES", "collect_wood", "the", "3", "{", "glasses", "woodland"])))
def test_a_text_comes_back_as_it_went_and_has_none_of_the_words_meanwhile(words: list[str]) -> None:
    text = " ".join(words)
    there = lexicon().there(text)
    assert lexicon().back(there) == text
    assert not {w.lower() for w in re.findall("[A-Za-z]+", there)} & {*WORDS, "woods", "berries", "glasses"}


def test_the_seed_alone_says_which_words() -> None:
    assert lexicon() == lexicon()
    assert lexicon("8") != lexicon()
    made = list(lexicon().words.values())
    assert len(set(made)) == len(WORDS)
    assert lexicon().there("Collect wood: collect_wood.").startswith("Collect ")


def test_a_reply_is_read_under_the_games_words_and_shown_under_them() -> None:
    reply = lexicon().there('{"action": "collect_wood", "params": {"with": "axe"}}')
    for size in (1, 2, 5, 100):
        backend = ScriptedBackend([reply], piece=size)
        schema = {"properties": {"action": {"enum": ["collect_wood", "eat_cow"]}, "params": {"type": "object"}}}
        request = Request([Message("user", "Wood is here; eat_cow.")], constraint=JsonConstraint(schema))
        shown: list[Draft] = []
        told = asyncio.run(Skinned(backend, lexicon()).complete(request, shown.append))
        assert shown[-1].text == told.text
        assert told.text == '{"action": "collect_wood", "params": {"with": "axe"}}'
        sent = backend.requests[0]
        assert "ood" not in sent.messages[0].text()
        assert isinstance(sent.constraint, JsonConstraint)
        properties = sent.constraint.schema["properties"]
        assert list(properties) == ["action", "params"]
        assert properties["action"]["enum"] == [lexicon().there("collect_wood"), lexicon().there("eat_cow")]


def test_options_and_functions_are_renamed_and_pictures_are_not_seen() -> None:
    backend = ScriptedBackend(["x", "x"], abilities=Abilities(images=True))
    skinned = Skinned(backend, lexicon())
    assert skinned.abilities.images is False
    call = CallConstraint([FunctionDef("collect_wood", "Collect wood.", {"type": "object"})])
    for constraint in (ChooseConstraint(["collect wood", "eat cow"]), call):
        asyncio.run(skinned.complete(Request([Message("user", "?")], constraint=constraint)))
    assert not re.search("wood|cow", repr([request.constraint for request in backend.requests]))


def test_calls_are_renamed_in_both_directions() -> None:
    there = lexicon().there
    called = Reply("", calls=(FunctionCall(there("collect_wood"), {"with": there("axe")}),))
    backend = ScriptedBackend([called])
    before = Message("assistant", "", (FunctionCall("eat_cow", {"which": "cow"}),))
    reply = asyncio.run(Skinned(backend, lexicon()).complete(Request([before])))
    assert reply.calls == (FunctionCall("collect_wood", {"with": "axe"}),)
    assert backend.requests[0].messages[0].calls == (FunctionCall(there("eat_cow"), {"which": there("cow")}),)


@pytest.mark.parametrize("game", ["crafter", "minigrid", "matrix"])
def test_a_lexicon_of_an_installed_game_takes_no_word_of_a_reply(game: str) -> None:
    words = Lexicon.drawn(PluginHost.discovered().games.get(game).vocabulary, "1").words
    assert len(words) >= 8
    assert not words.keys() & {"action", "params", "reasoning", "times", "until"}
