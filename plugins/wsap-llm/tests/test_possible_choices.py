"""Agents can choose only the values that an observation declares possible for a parameter."""

from __future__ import annotations

import random

import pytest

from wsap_core.protocol import ActionAvailability, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.worlds.legality import narrowed
from wsap_llm.reply.schema import legal_actions, reply_schema
from wsap_llm.reply.tags import TagTurn

VOTE = ActionDef("vote", "Vote", (ParamDef("player", "Ann|Bo|Cy"),))
SWAP = ActionDef("swap", "Swap two", (ParamDef("first", "Ann|Bo|Cy"), ParamDef("second", "Ann|Bo|Cy")))
WAIT = ActionDef("wait")
SPACE = ActionSpace((VOTE, SWAP, WAIT))


def legal(*told: ActionAvailability) -> tuple[ActionDef, ...]:
    return legal_actions(SPACE, Observation(available_actions=told))


def test_only_the_words_that_are_possible_now_can_be_said() -> None:
    vote = legal(Possible("vote", choices={"player": ("Ann", "Cy")}))[0]

    assert vote.name == "vote"
    assert vote.parameters[0].choices() == ("Ann", "Cy")


@pytest.mark.parametrize("words", [("Bo",), ("Ann", "Cy")])
def test_tags_and_json_are_bound_to_them(words: tuple[str, ...]) -> None:
    import re

    vote = legal(
        Possible("vote", choices={"player": words}),
        ActionAvailability("swap", False, "not now"),
        ActionAvailability("wait", False, "not now"),
    )

    pattern = TagTurn((), vote).pattern()
    assert re.fullmatch(pattern, f"<thinking>\nSo be it.</thinking>\n<vote>{words[0]}</vote>")
    for other in {"Ann", "Bo", "Cy"} - set(words):
        assert not re.fullmatch(pattern, f"<thinking>\nSo be it.</thinking>\n<vote>{other}</vote>")
    assert reply_schema(vote)["properties"]["params"]["properties"]["player"]["enum"] == list(words)


def test_a_parameter_that_is_not_spoken_of_stays_as_it_was_declared() -> None:
    swap = legal(Possible("swap", choices={"first": ("Bo",)}))[1]

    assert [p.choices() for p in swap.parameters] == [("Bo",), ("Ann", "Bo", "Cy")]
    assert narrowed(WAIT, {}) is WAIT


def test_what_is_not_available_is_left_out_all_the_same() -> None:
    assert [a.name for a in legal(Possible("vote", False, "not now", choices={"player": ("Ann",)}))] == [
        "swap",
        "wait",
    ]


def test_random_legal_play_takes_only_what_is_possible() -> None:
    from wsap_core.builtin.random_agents import RandomAgent

    agent = RandomAgent(random.Random(1), legal_only=True)
    agent.initialize("", ActionSpace((VOTE,)))
    seen = {
        agent.decide(Observation(available_actions=(Possible("vote", choices={"player": ("Bo", "Cy")}),))).parameters[
            "player"
        ]
        for _ in range(40)
    }

    assert seen == {"Bo", "Cy"}


def test_it_travels_and_an_older_reader_takes_it_for_a_plain_one() -> None:
    from wsap_core.protocol.wire import Codec, encode

    possible = Possible("vote", choices={"player": ("Ann",)})
    seen = Observation(available_actions=(possible,))

    back = Codec().decode(Observation, encode(seen))
    assert back.available_actions is not None
    assert isinstance(back.available_actions[0], Possible)
    assert list(back.available_actions[0].choices["player"]) == ["Ann"]
    assert encode(ActionAvailability("vote")) == {"available": True, "name": "vote", "reason": ""}
