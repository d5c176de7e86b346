"""Worlds, seats, barriers and messages, shown with the matrix games and small worlds made here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    AgentMessage,
    Barrier,
    Context,
    Mailbox,
    Observation,
    ParamDef,
    Seat,
    World,
)
from wsap_core.errors import SnapshotError, UsageError, WorldError
from wsap_matrix import plugin


def matrix(name: str = "matrix", **options: object) -> World:
    spec = next(s for s in plugin.wsap_adapters() if s.name == name)
    return World.create(spec, Context.create(0, config=options))


@given(
    order=st.permutations(["a", "b", "c"]),
    values=st.lists(st.sampled_from(["x", "y"]), min_size=3, max_size=3),
)
def test_the_order_in_which_actions_arrive_never_changes_what_a_round_does(order: list[str], values: list[str]) -> None:
    seen: list[list[tuple[str, str]]] = []
    choices = dict(zip(["a", "b", "c"], values, strict=True))

    def resolve(actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        seen.append([(s, a.name) for s, a in actions.items()])
        return {s: ActionResult(True) for s in actions}

    async def play() -> None:
        barrier = Barrier("abc", resolve, lambda s: Action("x"), observe=lambda s: Observation(), expects=lambda: "abc")
        await asyncio.gather(*(barrier.act(seat, Action(choices[seat])) for seat in order))

    asyncio.run(play())
    assert seen == [[("a", choices["a"]), ("b", choices["b"]), ("c", choices["c"])]]


def test_messages_of_a_round_arrive_after_it_in_the_order_of_the_seats() -> None:
    async def play() -> tuple[list[str], list[str], list[str]]:
        world = matrix(rounds=4)
        row, column = world.open_seat("row"), world.open_seat("column")
        await column.observe()
        assert (await column.act(Action("say", {"text": "trust me"}))).success
        assert (await column.act(Action("tell", {"to": "row", "text": "really"}))).success
        hidden = [m.content for m in (await row.observe()).messages]
        await asyncio.gather(row.act(Action("cooperate")), column.act(Action("cooperate")))
        heard = [m.content for m in (await row.observe()).messages]
        again = [m.content for m in (await row.observe()).messages]
        assert heard == again
        await asyncio.gather(row.act(Action("cooperate")), column.act(Action("cooperate")))
        later = [m.content for m in (await row.observe()).messages]
        own = [m.content for m in (await column.observe()).messages]
        assert own == []
        return hidden, heard, later

    assert asyncio.run(play()) == ([], ["trust me", "really"], [])


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action("tell", {"to": "nobody", "text": "hi"}), "must be one of 'column'"),
        (Action("tell", {"to": "row", "text": "hi"}), "must be one of 'column'"),
        (Action("say", {"text": "  "}), "empty"),
        (Action("say", {"text": "x" * 2001}), "too long"),
        (Action("tell_team", {"text": "hi"}), "no team"),
        (Action("say"), "needs 'text'"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused_with_the_reason(action: Action, reason: str) -> None:
    async def play() -> ActionResult:
        world = matrix()
        seat = world.open_seat("row")
        return await seat.act(action)

    result = asyncio.run(play())
    assert not result.success
    assert reason in result.message


class Counter:
    """A game of five members that counts how often it was asked."""

    def __init__(self) -> None:
        self.calls: list[Action] = []

    @property
    def game_description(self) -> str:
        return "Count."

    @property
    def action_space(self) -> ActionSpace:
        return ActionSpace(
            [
                ActionDef("add", "Add", [ParamDef("amount", "1-10"), ParamDef("how", "fast|slow", optional=True)]),
                ActionDef("crash"),
            ]
        )

    def observe(self) -> Observation:
        return Observation(status={"count": len(self.calls)}, inventory={"bead": 2})

    def act(self, action: Action) -> ActionResult:
        if action.name == "crash":
            raise RuntimeError("the wheel came off")
        self.calls.append(action)
        return ActionResult(True, observation=self.observe())

    def reset(self) -> Observation:
        self.calls.clear()
        return self.observe()


def counter() -> tuple[Counter, Seat]:
    game = Counter()
    world = World(AdapterSpec("counter", "Counts.", Counter), game)
    return game, world.open_seat("me")


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action("ad"), "Did you mean add"),
        (Action("add"), "needs 'amount'"),
        (Action("add", {"amount": 11}), "1 to 10"),
        (Action("add", {"amount": "many"}), "1 to 10"),
        (Action("add", {"amount": 2, "how": "upside down"}), "fast, slow"),
        (Action("add", {"amount": 2, "when": "now"}), "no parameter 'when'"),
        (Action("add", {"amount": True}), "1 to 10"),
        (Action("look", {"target": "north"}), "no way to look"),
    ],
)
def test_an_action_that_was_not_declared_so_never_reaches_the_game(action: Action, reason: str) -> None:
    game, seat = counter()
    outcome = asyncio.run(seat.step(action))
    assert not outcome.result.success
    assert reason in outcome.result.message
    assert not outcome.stepped
    assert game.calls == []


def test_numbers_and_words_in_a_near_miss_form_are_understood() -> None:
    game, seat = counter()
    assert asyncio.run(seat.act(Action("add", {"amount": "3", "how": "FAST"}))).success
    assert game.calls == [Action("add", {"amount": 3, "how": "fast"})]


def test_a_plain_game_gets_one_seat_with_a_body_that_can_be_inspected_and_left() -> None:
    async def play() -> tuple[str, bool, ActionResult]:
        _, seat = counter()
        look = await seat.act(Action("inspect_self"))
        left = await seat.act(Action("jack_out", {"mode": "suspend"}))
        after = await seat.act(Action("add", {"amount": 1}))
        assert seat.left is not None
        assert seat.left.avatar_state.value == "suspended"
        return look.message, left.done, after

    message, done, after = asyncio.run(play())
    assert "2 bead" in message
    assert done
    assert not after.success


def test_a_second_agent_is_refused_where_there_is_one_seat() -> None:
    _, seat = counter()
    with pytest.raises(UsageError, match="seats of 'counter' are taken"):
        seat.world.open_seat("you")
    with pytest.raises(UsageError, match="already has a seat"):
        seat.world.open_seat("me")


def test_an_exception_of_the_game_names_the_game_and_keeps_its_cause() -> None:
    _, seat = counter()
    with pytest.raises(WorldError, match=r"'counter' raised RuntimeError: the wheel came off") as caught:
        asyncio.run(seat.act(Action("crash")))
    assert isinstance(caught.value.__cause__, RuntimeError)


class Answers(Counter):
    """Answers everything with the same, whatever it is."""

    def __init__(self, answer: Callable[[], object]) -> None:
        super().__init__()
        self.answer = answer

    def act(self, action: Action) -> ActionResult:
        return cast(ActionResult, self.answer())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda: None, "answered 'crash' with a NoneType"),
        (lambda: ActionResult(True, observation=cast(Observation, None)), "whose observation is a NoneType"),
        (lambda: ActionResult(True, observation=cast(Observation, {"hp": 1})), "whose observation is a dict"),
        (lambda: ActionResult(True, reward=10**400), r"a reward beyond 1e\+15: 1000"),
        (lambda: ActionResult(True, reward=float("nan")), "a reward that is not a finite number: nan"),
        (lambda: ActionResult(True, reward=cast(float, None)), "a reward that is not a finite number: None"),
        (lambda: ActionResult(True, achievements="lamp"), "achievements of ActionResult must be a list, not a str"),
        (lambda: ActionResult(True, achievements=cast(list[str], [1])), "achievements that are not all names"),
        (lambda: ActionResult(True, message=cast(str, None)), "message that is not a text: None"),
        (lambda: ActionResult(True, observation=Observation(step=-1)), "a step that does not count from 0: -1"),
        (lambda: sys.exit(3), "'answers' raised SystemExit: 3"),
    ],
)
def test_an_answer_that_cannot_be_used_is_blamed_on_the_game(answer: Callable[[], object], why: str) -> None:
    seat = World(AdapterSpec("answers", "Answers.", Answers), Answers(answer)).open_seat("me")
    with pytest.raises(WorldError, match=why) as caught:
        asyncio.run(seat.act(Action("crash")))
    assert "'answers'" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"location": "cave"}, "observed a location that is a str, not a Location"),
        (
            {"available_actions": ["go"]},
            "with a str among them, where each is of the type ActionAvailability",
        ),
        ({"current_goals": "win"}, "current_goals of Observation must be a list, not a str"),
        ({"recent_events": 3}, "TypeError: 'int' object is not iterable"),
        ({"inventory": ["lamp"]}, "inventory that is a list, not a mapping"),
        ({"step": "x"}, "a step that does not count from 0: 'x'"),
    ],
)
def test_an_observation_with_a_field_of_another_kind_is_blamed_on_the_game(
    fields: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, seat = counter()
    monkeypatch.setattr(game, "observe", lambda: Observation(**cast(dict[str, Any], fields)))
    with pytest.raises(WorldError, match=why):
        asyncio.run(seat.observe())


def test_a_world_goes_on_from_its_snapshot_as_if_nothing_had_happened() -> None:
    async def play(saved: bool) -> list[float]:
        world = matrix(rounds=4)
        row, column = world.open_seat("row"), world.open_seat("column")
        await asyncio.gather(row.act(Action("defect")), column.act(Action("cooperate")))
        if saved:
            data = world.snapshot()
            world = matrix(rounds=4)
            row, column = world.open_seat("row"), world.open_seat("column")
            world.restore(data)
        rewards = []
        for a, b in [("cooperate", "defect"), ("defect", "defect"), ("cooperate", "cooperate")]:
            seen = [await row.observe(), await column.observe()]
            results = await asyncio.gather(row.act(Action(a)), column.act(Action(b)))
            rewards += [r.reward for r in results] + [seen[0].status["your total"], results[0].done]
        return rewards

    assert asyncio.run(play(True)) == asyncio.run(play(False))


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", b'{"format": 2, "game": "matrix"}'])
def test_a_damaged_snapshot_is_refused(damage: bytes) -> None:
    world = matrix()
    world.open_seat("row")
    with pytest.raises(SnapshotError):
        world.restore(damage)


def test_each_kind_of_message_reaches_whom_it_is_for_and_nobody_else() -> None:
    teams = {"a": "red", "b": "red", "c": "blue", "d": None}
    box = Mailbox(list(teams), team_of=teams.get, immediate=True)
    assert box.send(AgentMessage("a", "all", "broadcast")) == ""
    assert box.send(AgentMessage("a", "only c", "direct", "c")) == ""
    assert box.send(AgentMessage("a", "reds", "team")) == ""
    # A sender can't speak for another team by naming it.
    assert box.send(AgentMessage("c", "blues", "team", "red")) == ""
    heard = {seat: [m.content for m in box.waiting(seat)] for seat in teams}
    assert heard == {"a": [], "b": ["all", "reds"], "c": ["all", "only c"], "d": ["all"]}
    assert "no team" in box.send(AgentMessage("d", "anyone?", "team"))
    assert "no message type 'shout'" in box.send(AgentMessage("d", "hey", "shout"))


def test_unread_and_undelivered_messages_survive_a_snapshot() -> None:
    box = Mailbox(["a", "b"])
    box.send(AgentMessage("a", "first"))
    box.deliver()
    box.send(AgentMessage("a", "second"))
    other = Mailbox(["a", "b"])
    other.restore(box.snapshot())
    other.deliver()
    assert [m.content for m in other.waiting("b")] == ["first", "second"]
    with pytest.raises(SnapshotError):
        Mailbox(["a", "x"]).restore(box.snapshot())


@given(leaver=st.sampled_from(["a", "b", "c"]), acted=st.sets(st.sampled_from(["a", "b", "c"]), max_size=2))
def test_a_world_goes_on_without_a_seat_that_left(leaver: str, acted: set[str]) -> None:
    seen: list[list[str]] = []

    def resolve(actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        seen.append(list(actions))
        return {s: ActionResult(True, "resolved") for s in actions}

    async def play() -> list[ActionResult]:
        barrier = Barrier("abc", resolve, lambda s: Action("x"), observe=lambda s: Observation(), expects=lambda: "abc")
        early = [asyncio.create_task(barrier.act(seat, Action("x"))) for seat in sorted(acted)]
        await asyncio.sleep(0)
        barrier.leave(leaver)
        late = [barrier.act(s, Action("x")) for s in "abc" if s not in acted and s != leaver]
        return list(await asyncio.gather(*early, *late))

    results = asyncio.run(play())
    assert seen == [[s for s in "abc" if s != leaver]]
    assert sum(r.message == "resolved" for r in results) == 2


class HasRulesThatRaise:
    """A game with avatars, as far as its methods tell."""

    list_avatars = create_avatar = jack_in = jack_out = handle_death = respawn = observe = act = reset = print

    @property
    def game_description(self) -> str:
        raise OSError("no rules")


def test_a_world_asks_no_property_of_a_game_for_what_it_can_do() -> None:
    world = World(AdapterSpec("x", "X.", HasRulesThatRaise), HasRulesThatRaise())  # type: ignore[arg-type]  # it raises
    assert world.has_avatars


@pytest.mark.parametrize(
    ("seats", "team", "told"),
    [
        (("ann",), None, {}),
        (("ann", "bo"), None, {"say": None}),
        (("ann", "bo", "x|y"), None, {"say": None, "tell": ("bo", "x|y")}),
        (("ann", "bo", "cy"), "reds", {"say": None, "tell": ("bo", "cy"), "tell_team": None}),
    ],
)
def test_messages_are_listed_where_somebody_hears_them_and_name_who_can_be_told(
    seats: tuple[str, ...], team: str | None, told: dict[str, object]
) -> None:
    mailbox = Mailbox(seats, team_of=lambda seat: team)
    space = mailbox.actions_of("ann")
    assert {a.name: a.parameters[0].choices() for a in space.listed().actions} == told
    for other in seats[1:]:
        assert mailbox.send(AgentMessage("ann", "hi", "direct", other)) == ""
    for nobody in ("ann", "nobody"):
        assert "nobody else called" in mailbox.send(AgentMessage("ann", "hi", "direct", nobody))
