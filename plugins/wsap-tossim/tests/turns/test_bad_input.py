"""What players, models and users get wrong, through the seat and the options."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from turn_kit import Scene
from turn_scenes import investigator, nomination

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol import Action, ActionResult
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, Style, TagStyle
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.engine.data.model import Phase
from wsap_tossim.names import checked_names
from wsap_tossim.options import TownOptions
from wsap_tossim.world import Town, create


def refused(town: Town, player: int, *actions: Action) -> ActionResult:
    """Return the result of the last action, which came at once."""

    async def act() -> ActionResult:
        seat = town.seat(f"player-{player}")
        await seat.observe()
        for action in actions:
            result = await asyncio.wait_for(seat.act(action), 300)
        return result

    before = len(town.game.record)
    result = asyncio.run(act())
    assert not result.done
    assert len(town.game.record) - before == sum(a.name.startswith("write") for a in actions[:-1])
    return result


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (Action("vote", {"player": "Player 3"}), "You can't vote the dead."),
        (Action("vote", {"player": "Player 2"}), "You can't vote yourself."),
        (Action("vote", {"player": "Player 99"}), "'player' is not right"),
        (Action("vote", {}), "needs 'player'"),
        (Action("guilty"), "You can't guilty now (nomination)"),
        (Action("jail", {"player": "Player 4"}), "You can't jail now (nomination)"),
        (Action("unvote"), "You can't unvote now"),
        (Action("speak", {"text": ""}), "needs words"),
        (Action("speak", {"text": "a" * 401}), "401"),
        (Action("whisper", {"player": "Player 4", "text": "b" * 10_000}), "10000"),
        (Action("fly"), "There is no action 'fly' here."),
        (Action("chek_will", {"player": "Player 3"}), "Did you mean check_will"),
        (Action("lookup_role", {"role": "Wizard"}), "'role' is not right"),
        (Action("write_will", {"text": "x" * 10_000_000}), "10000000"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(action: Action, told: str) -> None:
    result = refused(nomination().town(), 2, action)
    assert not result.success
    assert told in result.message
    assert len(result.message) < 800
    assert "\n" not in result.message


def test_who_has_not_the_floor_is_refused() -> None:
    town = investigator().town()

    async def act() -> list[ActionResult]:
        seat = town.seat("player-1")
        return [await seat.act(Action("speak", {"text": "Me!"})), await seat.act(Action("roles"))]

    for result in asyncio.run(asyncio.wait_for(act(), 300)):
        assert not result.success
        assert result.message.startswith(("It is not your turn.", "Too late"))


def test_tools_are_used_so_often_in_a_turn_and_no_more() -> None:
    town = investigator().town()
    result = refused(town, 7, *[Action("roles")] * 9)
    assert result.message == "You can't use roles now: you have used enough tools for this turn."
    assert town.observation("player-7").is_available("wait").available
    assert not town.observation("player-7").is_available("roles").available


def test_a_notebook_that_is_full_loses_its_oldest_lines() -> None:
    town = investigator().town()
    lines = [Action("notebook", {"text": f"{n}: " + "x" * 395}) for n in range(4)]

    async def act() -> str:
        seat = town.seat("player-7")
        await seat.observe()
        for line in lines:
            assert (await seat.act(line)).success
        return (await seat.act(Action("view_notebook"))).message

    told = asyncio.run(act())
    assert "3: " in told
    assert "2: " in told
    assert "1: " not in told


# --- a model's replies ---------------------------------------------------------------------------


def decided(replies: Sequence[str], style: Style) -> tuple[list[Action], ScriptedBackend, LLMAgent]:
    """Let a model play the Investigator's turn with these replies; return what it did."""
    town = investigator().town()
    model = ScriptedBackend(list(replies), abilities=Abilities(prefill=True))
    agent = LLMAgent(model, LLMOptions("ToSSim", plan=False, window=0, fallback="wait", tool_calls=3), style=style)

    async def play() -> list[Action]:
        seat = town.seat("player-7")
        await agent.initialize(seat.game_description, seat.action_space)
        done = []
        while True:
            done.append(await agent.decide(await seat.observe()))
            if done[-1].name not in ("wait", "speak"):
                await agent.reflect(await seat.act(done[-1]))
                continue
            return done

    return asyncio.run(asyncio.wait_for(play(), 300)), model, agent


def test_of_two_final_actions_the_first_counts() -> None:
    done, _, _ = decided(["Hm.</thinking><speak>One.</speak><speak>Two.</speak>"], TagStyle())
    assert [(a.name, a.parameters["text"]) for a in done] == [("speak", "One.")]


@pytest.mark.parametrize("reply", ["I am thinking.", "</thinking>", "<dance>now</dance></thinking>"])
def test_no_final_action_and_an_unknown_tool_are_asked_again_once_and_then_it_waits(reply: str) -> None:
    done, model, agent = decided([reply, reply], TagStyle())
    assert [a.name for a in done] == ["wait"]
    assert len(model.requests) == 2
    assert "<wait/>" in model.requests[1].messages[-1].text()
    assert agent.last_decision is not None
    assert agent.last_decision.forced


def test_an_unknown_tool_in_json_is_asked_again_with_what_there_is() -> None:
    done, model, _ = decided(['{"tool": "read_minds", "params": {}}', '{"action": "wait", "params": {}}'], JsonStyle())
    assert [a.name for a in done] == ["wait"]
    assert "wait" in model.requests[1].messages[-1].text()


def test_a_tool_loop_comes_to_an_end() -> None:
    loop = [f"Look.<check_will>Player {n}</check_will>" for n in (1, 2, 3, 4, 5, 6)]
    done, model, agent = decided(loop, TagStyle())
    assert [a.name for a in done] == ["check_will", "check_will", "check_will", "wait"]
    assert agent.last_decision is not None
    assert agent.last_decision.forced
    assert len(model.requests) == 5, "three tools, the fourth refused, asked again, and then it waits"


def test_a_model_is_not_asked_where_the_game_was_over_before_its_turn_came() -> None:
    scene = Scene("Citizen", "Citizen", "Citizen", "Sheriff", "Mafioso", first_day="none", deathless_days=1).finish()
    town = scene.town()
    model = ScriptedBackend([])
    agent = LLMAgent(model, LLMOptions("ToSSim", plan=False, window=0))

    async def play() -> ActionResult:
        seat = town.seat("player-1")
        await agent.initialize(seat.game_description, seat.action_space)
        return await seat.act(await agent.decide(await seat.observe()))

    result = asyncio.run(asyncio.wait_for(play(), 300))
    assert result.done
    assert not model.requests


# --- time ----------------------------------------------------------------------------------------


def test_a_whole_game_ends_in_which_one_seat_misses_every_deadline() -> None:
    town = Town(TownOptions.read({"mode": "five", "rules": "quick"}), 1)
    silent = "player-2"

    async def others(seat: str) -> None:
        face = town.seat(seat)
        while True:
            await face.observe()
            if (await face.act(Action("wait"))).done:
                return

    async def game() -> None:
        async with asyncio.TaskGroup() as group:
            for seat in town.seats:
                if seat != silent:
                    group.create_task(others(seat))
            while not town.game.over:
                await asyncio.sleep(0)  # lets the others act; then the clock is at the deadline
                if town._barrier.expected == (silent,):
                    assert town.expire() == (silent,)

    asyncio.run(asyncio.wait_for(game(), 300))
    assert town.game.over
    assert town.game.phase is Phase.OVER
    forced = [e for e in town.game.record if e.forced]
    assert forced
    assert {(e.player, e.verb) for e in forced} == {(1, "wait")}
    assert {e.data["player"] for e in town.game.log if e.kind == "forced"} == {1}
    own = [e for e in town.game.record if e.player == 1]
    assert own == forced, "it never did anything else"


def test_an_action_that_comes_after_its_deadline_is_refused() -> None:
    town = investigator().town()

    async def late() -> ActionResult:
        seat = town.seat("player-7")
        await seat.observe()
        town.expire()
        return await seat.act(Action("speak", {"text": "Wait!"}))

    result = asyncio.run(late())
    assert not result.success
    assert result.message.startswith("Too late")
    assert not any(e.data.get("text") == "Wait!" for e in town.game.log)


# --- what a user sets ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["Ann", "Bob", "Cid", "Dora"], "4 names for 5 players"),
        (["Ann", "ann", "Cid", "Dora", "Eve"], "look alike"),
        (["Ann", "\u0410nn", "Cid", "Dora", "Eve"], "look alike"),
        (["modern", "modem", "Cid", "Dora", "Eve"], "look alike"),
        (["Night 3", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["Player 1", "Player 10", "Cid", "Zo\u00eb", "O'Neill"], None),
        (["rnodel", "model", "Cid", "Dora", "Eve"], "look alike"),
        (["System", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["Sy\u200bstem", "Bob", "Cid", "Dora", "Eve"], "not plain text"),
        (["\u0405ystem", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["Serial killer", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["The Jailor", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["wa\u00edt", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["Somebody", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["Ann Jester", "Vot", "Cid", "Dora", "Eve"], None),
        (["The Mafia", "Bob", "Cid", "Dora", "Eve"], "stands for something else"),
        (["", "Bob", "Cid", "Dora", "Eve"], "no letters"),
        (["x" * 31, "Bob", "Cid", "Dora", "Eve"], "at most 30"),
        (["**Ann**", "Bob", "Cid", "Dora", "Eve"], "not plain text"),
        (["Ann\nBob", "Bob", "Cid", "Dora", "Eve"], "not plain text"),
    ],
)
def test_names_can_be_told_apart_and_mean_nothing_else(names: list[str], told: str | None) -> None:
    if told is None:
        assert checked_names(names, 5) == tuple(names)
        return
    with pytest.raises(ConfigError, match=told):
        checked_names(names, 5)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"mood": "classic"}, "Did you mean mode?"),
        ({"nominaton_rounds": 2}, "Did you mean nomination_rounds?"),
        ({"zzz": 1}, "There are: mode, roles"),
        ({"mode": "clasic"}, "classic"),
        ({"rules": "clasic"}, "classic"),
        ({"roles": "Sherif, Doctor, Citizen, Citizen, Mafioso"}, "Sheriff"),
        ({"roles": "Sheriff, Doctor"}, "a game has 5 to 15"),
        ({"roles": "Mayor, Mayor, Citizen, Citizen, Mafioso"}, "more than one Mayor"),
        ({"mode": "five", "discussion_rounds": 99}, "discussion_rounds is 99"),
        ({"mode": "five", "tool_calls": "many"}, "tool_calls='many'"),
        ({"mode": "five", "own_summaries": "maybe"}, "own_summaries='maybe'"),
    ],
)
def test_options_that_cannot_be_are_refused_with_what_was_probably_meant(config: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create(Context.create(0, config=config))
    assert told in str(caught.value)


def test_a_game_is_not_gone_on_with_under_another_rule_set() -> None:
    kept = Town(TownOptions.read({"mode": "five"}), 1).snapshot()
    with pytest.raises(SnapshotError) as caught:
        Town(TownOptions.read({"mode": "five", "rules": "older"}), 1).restore(kept)
    assert "'classic', version 1" in str(caught.value)
    assert "'older', version 1" in str(caught.value)
    with pytest.raises(SnapshotError, match="another role list"):
        Town(TownOptions.read({"mode": "seven"}), 1).restore(kept)
    with pytest.raises(SnapshotError, match="not a snapshot of Town"):
        Town(TownOptions.read({"mode": "five"}), 1).restore(b"{}")


def test_a_scene_goes_on_after_a_snapshot_as_before() -> None:
    town = investigator().town()
    again = Scene(*town.options.setup.slots).town()
    again.restore(town.snapshot())
    assert again.observation("player-7") == town.observation("player-7")
