"""What an agent in the nexus is told that it can do is what its reply is bound to, and what the nexus accepts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from life_kit import at_desk, host_with
from told_and_bound import ABILITIES, Player

from wsap_core import Action, Observation
from wsap_core.protocol.availability import choices_of
from wsap_llm import agent
from wsap_llm.decision.choosing import ChooseStyle
from wsap_llm.decision.offers import offerable
from wsap_llm.decision.styles import CallStyle, JsonStyle, Style, TagStyle
from wsap_llm.options.llm import LLMOptions, Profile
from wsap_llm.reply.schema import legal_actions
from wsap_nexus.agents import lore, messages, metagoals
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL

STYLES: dict[str, Style] = {
    "json": JsonStyle(), "calls": CallStyle(), "tags": TagStyle(), "choose": ChooseStyle(JsonStyle()),
}  # fmt: skip


@pytest.fixture
def nexus(tmp_path: Path) -> Iterator[Nexus]:
    """A nexus with three agents, of which `udo` is in a team and has something in mind, and `eva` is alone there."""
    with open_store(str(tmp_path / "nexus.db")) as store:
        nexus = Nexus(host_with(), store, Settings(games=("minigrid", "echo")))
        with nexus.nexus_store.change() as tx:
            for agent_id in ("ida", "udo", "eva"):
                tx.register(agent_id, policies={"*": EXTERNAL})
            for agent_id in ("ida", "udo"):
                messages.set_team(tx, agent_id, "reds")
            lore.keep(tx, "udo", core_memories=["Cows are eaten."], strategies=["Look first.", "Wait."])
        yield nexus


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize("style", list(ABILITIES))
def test_what_the_nexus_names_is_what_the_reply_is_bound_to(
    monkeypatch: pytest.MonkeyPatch, nexus: Nexus, style: str, profile: Profile
) -> None:
    model = Player(style, seed=len(style))
    monkeypatch.setattr(agent, "offerable", lambda space: model.spaces.append(space) or offerable(space))

    async def decide() -> None:
        for agent_id in ("ida", "udo"):
            place = at_desk(nexus, agent_id)
            one = agent.LLMAgent(model, LLMOptions("the nexus", profile=profile, window=0), style=STYLES[style])
            await one.initialize(place.game_description, place.action_space)
            for _ in range(3):
                chosen = await one.decide(place.observe())
                if chosen.name != "wait_for_game":
                    await one.reflect(await place.act(chosen))

    asyncio.run(decide())
    assert model.decided >= 6
    assert not model.problems, model.problems[0]


@pytest.mark.parametrize("agent_id", ["ida", "udo", "eva"])
def test_every_word_that_the_nexus_offers_is_accepted(nexus: Nexus, agent_id: str) -> None:
    rng = random.Random(agent_id)
    free = {"text": "Look first.", "what": "memory"}
    goals = iter(metagoals.TEMPLATES)
    place = at_desk(nexus, agent_id)
    for action in legal_actions(place.action_space, place.observe()):
        if action.name in ("wait_for_game", "enter_game"):
            continue
        for word_of in (min, max):
            place = at_desk(nexus, agent_id)
            if action.name not in {a.name for a in legal_actions(place.action_space, place.observe())}:
                continue  # the only one that was kept has been let go
            offered = choices(place.observe(), action.name)
            given = {
                p.name: word_of(offered[p.name], key=str) if p.name in offered else free.get(p.name) or next(goals)
                for p in action.parameters
                if not p.optional or (p.name in offered and rng.random() < 0.5)
            }
            result = asyncio.run(place.act(Action(action.name, given)))
            assert result.success, f"{action.name} {given}: {result.message}"


def test_an_agent_can_tell_those_present_and_those_who_wrote_to_it(nexus: Nexus) -> None:
    assert choices(at_desk(nexus, "ida").observe(), "tell") == {"to": ["eva", "udo"]}
    with nexus.nexus_store.change() as tx:
        messages.send(tx, "udo", "direct", "Here I am.", to="ida")
        tx.update_agent("udo", state="paused")
    assert choices(at_desk(nexus, "ida").observe(), "tell") == {"to": ["eva", "udo"]}
    assert choices(at_desk(nexus, "eva").observe(), "tell") == {"to": ["ida"]}


def test_an_agent_lets_go_of_what_it_has_in_mind_and_of_nothing_else(nexus: Nexus) -> None:
    assert choices(at_desk(nexus, "udo").observe(), "let_go_of") == {"number": ["1", "2", "3"]}


def test_an_entry_takes_only_what_some_game_of_the_nexus_takes(tmp_path: Path) -> None:
    def taken(*games: str) -> dict[str, tuple[str, ...] | None]:
        with open_store(str(tmp_path / f"{len(games)}.db")) as store:
            nexus = Nexus(host_with(), store, Settings(games=games))
            with nexus.nexus_store.change() as tx:
                tx.register("ida", policies={"*": EXTERNAL})
            entry = at_desk(nexus, "ida").action_space.find("enter_game")
        assert entry is not None
        return {p.name: p.choices() for p in entry.parameters}

    assert set(taken("echo")) == {"game", "goals", "exit_when", "steps", "avatar", "respawn"}
    assert taken("echo", "minigrid")["loadout"] == ("default", "lockpick")


def choices(seen: Observation, action: str) -> dict[str, list[str]]:
    """Return the words that an observation offers for an action's parameters."""
    told = next(a for a in seen.available_actions or () if a.name == action)
    return {name: list(words) for name, words in choices_of(told).items()}
