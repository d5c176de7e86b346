"""A subclass that uses a name of a base class of the kit for something else is refused, with the name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from wsap_core import Action, Observation
from wsap_core.authoring.guarded import Guarded
from wsap_core.authoring.one_body import OneBodyGame
from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import PluginError
from wsap_core.loading import load_object
from wsap_llm.agent import LLMAgent
from wsap_llm.scripted import ScriptedBackend

Orchard: Any = load_object(f"{Path(__file__).with_name('orchard.py')}:Orchard")


@pytest.mark.parametrize("name", ["items", "body", "session", "gifts", "steps", "death", "play", "possible", "_begin"])
@pytest.mark.parametrize("when", ["begin", "play"])
def test_a_game_of_one_body_that_sets_a_name_of_the_kit_is_refused(name: str, when: str) -> None:
    class Clash(Orchard):
        def begin(self, seed: int | None) -> None:
            super().begin(seed)
            if when == "begin":
                setattr(self, name, [])

        def play(self, action: Action) -> Any:
            setattr(self, name, [])
            return super().play(action)

    with pytest.raises(PluginError, match=f"Clash sets self.{name}, a name of OneBodyGame; use another"):
        Clash().act(Action("shake"))


@pytest.mark.parametrize("name", ["items", "steps", "possible", "_begin", "_declared", "jack_in", "settle"])
def test_a_class_that_hides_a_name_of_the_kit_is_refused_when_it_is_defined(name: str) -> None:
    with pytest.raises(TypeError, match=f"Clash.{name} can't stand for that of OneBodyGame; choose another name"):
        type("Clash", (Orchard,), {name: lambda: 0})


def test_what_authors_may_set_and_override_is_accepted() -> None:
    class Fine(Orchard):
        def begin(self, seed: int | None) -> None:
            super().begin(seed)
            self.gifts, self.steps, self.done = Counter(), 0, False
            self._mine = self.mine = 1

        def danger(self, loud: bool = False) -> str:
            return ""

        def settle(self, *, spawn: str = "", **others: str) -> None:
            self.spawn = spawn

        @property
        def game_description(self) -> str:  # type: ignore[override]
            return "Fine."

    game = Fine()
    game.danger = lambda: "a wolf"  # type: ignore[method-assign]
    assert game.act(Action("shake")).success
    assert game.danger() == "a wolf"


@pytest.mark.parametrize("name", ["_toolbox", "_asker", "options", "decide"])
def test_an_agent_that_sets_a_name_of_the_agent_for_models_is_refused(name: str) -> None:
    class Clash(LLMAgent):
        def __init__(self) -> None:
            super().__init__(ScriptedBackend(["{}"]))
            setattr(self, name, 9)

    with pytest.raises(PluginError, match=f"Clash sets self.{name}, a name of LLMAgent; use another"):
        Clash()


def test_every_attribute_that_the_kit_sets_is_known_to_it() -> None:
    orchard = Orchard()
    own = {"_apples", "_news", "_random", "_declared"}
    assert set(vars(orchard)) - own <= set(OneBodyGame._kit)
    assert {"seed", "episode", "round", "mailbox", "_paid", "_before", "_random", "_barrier"} <= set(RoundGame._kit)


def test_a_class_that_is_not_the_kits_gets_no_names_of_its_own() -> None:
    class Kit(Guarded, keeps={"score": int}):
        def add(self) -> None:
            self._sum = 1

    class First(Kit):
        def more(self) -> Observation:
            return Observation()

    class Second(First):
        def more(self, *, of: int = 0) -> Observation:
            return Observation(step=of)

    made = Second()
    made.score = 3  # type: ignore[attr-defined]
    assert set(Kit._kit) == {"add", "_sum", "score"}
    assert Second().more(of=2).step == 2
