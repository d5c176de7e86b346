"""The nexus as a world: it keeps the protocol's promises, and does what its actions say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from life_kit import at_desk, host_with, nexus_at

from wsap_check import GameAdapterTests
from wsap_core import Action, Goal
from wsap_core.protocol import AgentMessage, Event
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_nexus.agents import messages
from wsap_nexus.agents.skills import GameEntry, Suggestion
from wsap_nexus.hub.agents.desk import MOST_ASIDE, NexusAdapter
from wsap_nexus.hub.agents.place import NEXUS_ACTIONS, NEXUS_SPEC, NexusObservation
from wsap_nexus.hub.lobby import Entrance
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, Policy

pytestmark = pytest.mark.every_database


class Still(Entrance):
    """The entrance of a nexus in which no time passes: nobody goes anywhere, and every wait is over at once.

    It is asked by many places side by side, as the conformance suite makes them, and tells each the same.
    """

    def request_enter(self, agent_id: str, game: str, terms: object) -> str:
        return f"You are on your way to {self.game_info(game).name}."

    async def wait(self, agent_id: str, seconds: float) -> bool:
        return False


@pytest.fixture
def nexus(tmp_path: Path) -> Iterator[Nexus]:
    with open_store(str(tmp_path / "nexus.db")) as store:
        nexus = Nexus(host_with(), store, Settings(games=("crafter", "echo")))
        with nexus.nexus_store.change() as tx:
            for agent_id in ("ida", "udo"):
                tx.register(agent_id, policies={"*": EXTERNAL})
        yield nexus


class TestTheNexusKeepsTheProtocol(GameAdapterTests):
    @pytest.fixture
    def game(self, nexus: Nexus) -> object:
        still: Any = Still(nexus.context, nexus.capacity, nexus.entrance.worlds)
        context = replace(nexus.context, wakeups=still)
        return replace(NEXUS_SPEC, factory=lambda: NexusAdapter(context, still, "ida"))

    @pytest.fixture
    def steps(self) -> int:
        return 12


EVERYTHING = NexusObservation(
    current_goals=(Goal("traveller", "Visit every world", "meta", "1/2", ("still to do in: echo",)),),
    recent_events=(Event("In crafter avatar-1 died of starvation."),),
    messages=(AgentMessage("udo", "Come along!", "direct", "ida"),),
    step=3,
    agent="Ida",
    skills={"crafting": 0.25, "combat": 0.5},
    carried=("iron sword",),
    games=(
        GameEntry("crafter", "Crafter", "Survive.", "available", 1, 1, 2, ("avatar-1 (dormant)",)),
        GameEntry("echo", "Echo", "A room\nthat repeats.", "offline"),
    ),
    suggestions=(Suggestion("crafter", 0.5, ("a body of yours sleeps there",)),),
    recent=("crafter: 60 decisions, ended by condition",),
    present=("udo",),
)


def test_what_an_agent_perceives_in_the_nexus_reads_like_this() -> None:
    text = EVERYTHING.to_text()
    worlds = text[text.index("WORLDS:") : text.index("RECENT EVENTS:")]
    assert worlds == (
        "WORLDS:\n"
        "- crafter (available, 2 visits): Survive.; your bodies: avatar-1 (dormant)\n"
        "- echo (offline, never visited): A room that repeats.\n"
        "\nSUGGESTIONS:\n"
        "- crafter (0.50): a body of yours sleeps there\n"
        "\nSKILLS:\n"
        "combat 0.50, crafting 0.25\n"
        "\nYOU CARRY:\n"
        "iron sword\n"
        "\nBEFORE:\n"
        "- crafter: 60 decisions, ended by condition\n"
        "\nHERE:\n"
        "udo\n\n"
    )
    for part in ("Visit every world", "1/2", "died of starvation", "Come along!"):
        assert part in text.replace(worlds, "")


def test_a_small_model_perceives_the_open_worlds_and_what_it_has() -> None:
    seen = replace(EVERYTHING, recent_events=(), in_mind=("Lava kills.",))
    assert seen.to_brief().splitlines() == [
        "udo: Come along!",
        "crafter: Survive.",
        "Suggestion: crafter, as a body of yours sleeps there",
        "You carry: iron sword",
        "You keep in mind: 1. Lava kills.",
        "Here: udo",
        "Goal: Visit every world (1/2) - still to do in: echo",
    ]


def test_what_an_agent_perceives_in_the_nexus_comes_through_the_wire_as_it_is() -> None:
    codec = Codec((NexusObservation,))
    again = codec.decode(NexusObservation, encode(EVERYTHING))
    assert again == EVERYTHING
    assert dumps(again) == dumps(EVERYTHING)


def act(nexus: Nexus, name: str, agent: str = "ida", **given: Any) -> tuple[bool, str]:
    result = asyncio.run(at_desk(nexus, agent).act(Action(name, given)))
    return result.success, result.message


def test_every_action_of_the_specification_is_there() -> None:
    assert set(NEXUS_ACTIONS.names) == {
        "list_games",
        "game_details",
        "enter_game",
        "wait_for_game",
        "review_self",
        "review_achievements",
        "set_meta_goal",
        "abandon_meta_goal",
        "keep_in_mind",
        "let_go_of",
        "say",
        "tell",
        "tell_team",
    }


def test_an_agent_sets_a_goal_sees_how_far_it_is_and_gives_it_up(nexus: Nexus) -> None:
    place = at_desk(nexus, "ida")
    assert not any(a.available for a in place.observe().available_actions or () if a.name == "abandon_meta_goal")
    success, message = act(nexus, "set_meta_goal", goal="traveller")
    assert (success, message) == (True, "Your goal 'traveller': Visit every world; so far 0/2.")
    (goal,) = at_desk(nexus, "ida").observe().current_goals
    assert (goal.id, goal.type, goal.progress, goal.hints) == (
        "traveller",
        "meta",
        "0/2",
        ("still to do in: crafter, echo",),
    )
    assert act(nexus, "abandon_meta_goal", goal="traveller")[0]
    assert act(nexus, "abandon_meta_goal", goal="traveller") == (
        False,
        "You have no goal 'traveller'; you have: none.",
    )


def test_an_agents_own_goal_is_counted_and_is_not_worth_anything(nexus: Nexus) -> None:
    given = {"about": "reach_skill_level", "what": "combat", "count": 20}
    assert act(nexus, "set_meta_goal", goal="Fight well", **given)[1].startswith("Your goal 'fight-well': Fight well; ")
    (goal,) = at_desk(nexus, "ida").observe().current_goals
    assert goal.progress == "0/0.2"
    success, why = act(nexus, "set_meta_goal", goal="traveller", about="visit_game")
    assert not success
    assert "choose another name" in why
    success, why = act(nexus, "set_meta_goal", goal="Traveller!", about="visit_game")
    assert not success
    success, why = act(nexus, "set_meta_goal", goal="be happy")
    assert not success
    assert "endurance (Survive 100 steps in three worlds)" in why


def test_who_only_looks_and_notes_is_offered_nothing_else_until_it_goes_waits_or_speaks(nexus: Nexus) -> None:
    """A small model kept one thing in mind after the other and let it go again, and entered no world."""
    desk = at_desk(nexus, "ida")

    def offered() -> set[str]:
        return {each.name for each in desk.observe().available_actions or () if each.available}

    def did(name: str, **given: Any) -> tuple[bool, str]:
        result = asyncio.run(desk.act(Action(name, given)))
        return result.success, result.message

    aside = {"game_details", "review_achievements", "set_meta_goal", "keep_in_mind"}
    for number in range(5):
        assert aside <= offered()
        assert did("keep_in_mind", what="memory", text=f"Thought {number}.")[0]
    assert offered() == {"enter_game", "wait_for_game", "say", "tell"}
    refused, why = did("review_achievements")
    assert not refused
    assert "go into a world, or wait" in why
    assert did("wait_for_game", timeout=1)[0]
    assert aside <= offered()


def test_who_has_looked_and_noted_enough_may_look_again_to_answer_a_message(nexus: Nexus) -> None:
    desk = at_desk(nexus, "ida")

    def did(name: str, **given: Any) -> bool:
        return asyncio.run(desk.act(Action(name, given))).success

    for number in range(MOST_ASIDE - 1):
        assert did("keep_in_mind", what="memory", text=f"Thought {number}.")
    assert act(nexus, "tell", "udo", to="ida", text="What have you achieved?") == (True, "ida will hear it.")
    assert did("keep_in_mind", what="memory", text="Lava kills.")  # decided before it could see the message
    assert [m.content for m in desk.observe().messages] == ["What have you achieved?"]
    assert did("review_achievements")
    assert did("tell", to="udo", text="Nothing yet.")
    assert [m.content for m in at_desk(nexus, "udo").observe().messages] == ["Nothing yet."]


def test_who_keeps_nothing_in_mind_replaces_nothing(nexus: Nexus) -> None:
    assert act(nexus, "keep_in_mind", what="memory", text="Lava kills.", instead_of=2) == (True, "You keep it in mind.")
    assert at_desk(nexus, "ida").observe().in_mind == ("memory: Lava kills.",)


def test_messages_are_shown_until_they_were_acted_upon(nexus: Nexus) -> None:
    assert act(nexus, "tell", "udo", to="ida", text="hello") == (True, "ida will hear it.")
    assert act(nexus, "say", "udo", text="hello all") == (True, "1 will hear it.")
    place = at_desk(nexus, "ida")
    seen = place.observe()
    assert [(m.sender, m.content, m.type) for m in seen.messages] == [
        ("udo", "hello", "direct"),
        ("udo", "hello all", "broadcast"),
    ]
    assert place.observe() == seen
    result = asyncio.run(place.act(Action("list_games")))
    assert result.observation.messages == ()
    assert at_desk(nexus, "ida").observe().messages == ()


def test_a_team_hears_what_is_for_it_and_nobody_else_does(nexus: Nexus) -> None:
    assert act(nexus, "tell_team", text="psst") == (False, "You are not in a team.")
    with nexus.nexus_store.change() as tx:
        tx.register("eva", policies={"*": EXTERNAL})
        for agent_id in ("ida", "eva"):
            messages.set_team(tx, agent_id, "reds")
    assert act(nexus, "tell_team", text="psst") == (True, "1 will hear it.")
    assert [m.content for m in at_desk(nexus, "eva").observe().messages] == ["psst"]
    assert not at_desk(nexus, "udo").observe().messages


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("tell", {"to": "ida", "text": "x"}, "You can't send a message to yourself."),
        ("tell", {"to": "nobody", "text": "x"}, "There is no agent 'nobody'; in the nexus are: udo."),
        ("say", {"text": "  "}, "The message is empty."),
        ("say", {"text": "x" * 2001}, "The message is too long: 2001 characters; at most 2000."),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(
    nexus: Nexus, name: str, given: dict[str, str], why: str
) -> None:
    assert act(nexus, name, **given) == (False, why)


def test_nobody_can_bury_another_in_messages(nexus: Nexus) -> None:
    for _ in range(messages.FROM_ONE):
        assert act(nexus, "tell", "udo", to="ida", text="hey")[0]
    success, why = act(nexus, "tell", "udo", to="ida", text="hey")
    assert not success
    assert why == "ida has not read your last 20 messages yet."
    assert len(at_desk(nexus, "ida").observe().messages) == messages.SHOWN


def test_what_was_said_stands_in_no_event_that_everybody_can_read(nexus: Nexus) -> None:
    act(nexus, "tell", "udo", to="ida", text="a secret")
    with nexus.nexus_store.look() as tx:
        (event,) = tx.events(kinds=("message_sent",))
    assert (event.agent_id, event.body) == ("udo", {"form": "direct", "recipients": 1, "to": "ida"})


def test_waiting_ends_when_a_world_opens(tmp_path: Path) -> None:
    async def test() -> None:
        async with nexus_at(tmp_path, {"ida": {"*": EXTERNAL}}, host=host_with()) as place:
            place.nexus.set_game_status("echo", "offline", "being cleaned")
            waiting = asyncio.create_task(place.nexus.context.wakeups.wait("ida", 600))
            await asyncio.sleep(0)
            place.nexus.set_game_status("echo", "available")
            async with asyncio.timeout(10):
                assert await waiting

    asyncio.run(test())


def test_nobody_enters_twice_from_one_visit(nexus: Nexus) -> None:
    async def test() -> None:
        place = at_desk(nexus, "ida")
        first = await place.act(Action("enter_game", {"game": "echo"}))
        assert (first.success, first.done) == (True, True)
        second = await place.act(Action("enter_game", {"game": "echo"}))
        assert (second.success, second.done) == (False, True)

    asyncio.run(test())


def test_game_details_say_what_skills_are_worth_and_which_bodies_there_are(nexus: Nexus) -> None:
    success, text = act(nexus, "game_details", game="crafter")
    assert success
    assert "Skills used there: " in text
    assert "is worth" in text
    success, why = act(nexus, "game_details", game="atlantis")
    assert not success
    assert "atlantis" in why


def test_policies_decide_in_the_nexus_too(tmp_path: Path) -> None:
    async def test() -> None:
        policies = {"nexus": Policy("wanderer", {"exit_when": "step >= 3", "curiosity": 0.0})}
        async with nexus_at(tmp_path, {"ida": policies}, host=host_with(), games=("echo",)) as place:
            (entered,) = (await place.until_events("entered"))[:1]
            assert entered.game == "echo"

    asyncio.run(test())
