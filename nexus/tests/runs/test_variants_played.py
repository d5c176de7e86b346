"""A game whose options say how many seats it has: typed, called from Python, and played in the nexus."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from cli_kit import own_folder
from life_kit import nexus_at

from wsap_core.cli import main
from wsap_core.discovery import FoundPlugin, find_plugins
from wsap_core.host import PluginHost
from wsap_core.seams.clock import SystemClock
from wsap_core.specs import AdapterSpec
from wsap_nexus.api import read_run
from wsap_nexus.hub.lobby import Lobby
from wsap_nexus.hub.play.seating import seat_names
from wsap_nexus.hub.transit.entering import PreparedEntry
from wsap_nexus.runs.plan import RunPlan, SeatPlan, game_of, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest

GAME = """
from dataclasses import replace

from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation


def players(spec, options):
    given = options.get("players", 3)
    if given == 13:
        raise ConfigError("Thirteen at a table bring bad luck.")
    return replace(spec, seats=(given, given))


class Chair:
    game_description = "A parlour."
    action_space = ActionSpace([ActionDef("nod", "Nod")])

    def __init__(self):
        self.nods = 0

    def observe(self):
        return Observation(step=self.nods)

    def act(self, action):
        self.nods += 1
        return ActionResult(True, "You nod.", done=self.nods >= 2, observation=self.observe())

    def reset(self):
        self.nods = 0
        return self.observe()


class Parlour(Chair):
    wsap_spec = {"seats": (2, 15), "variant": players}

    def __init__(self, context):
        super().__init__()
        context.config.get("players")
        self.chairs = {}

    def seat(self, agent_id):
        return self.chairs.setdefault(agent_id, Chair())
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_folder(tmp_path, monkeypatch)
    (tmp_path / "parlour.py").write_text(GAME, encoding="utf-8")
    return tmp_path


def typed(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = main(["play", "./parlour.py:Parlour", "--no-record", "--json", *more])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(("options", "count"), [((), 3), (("--option", "players=5"), 5)])
def test_every_seat_there_is_gets_somebody(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], count: int
) -> None:
    code, out, _ = typed(capsys, *options, "--seat", "seat-2=random-legal", "--fill", "random")
    assert code == 0
    assert [seat["agent"] for seat in json.loads(out)["seats"]] == ["random", "random-legal", *["random"] * (count - 2)]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--option", "players=13"), "Thirteen at a table bring bad luck."),
        (("--option", "players=16"), "the seats (16) are not in 2 to 15"),
        (
            ("--option", "players=2", "--seat", "seat-3=random"),
            "has no seat 'seat-3' with these options; its seats are: seat-1, seat-2.",
        ),
    ],
)
def test_seats_that_can_not_be_are_told_in_a_sentence(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...], why: str
) -> None:
    code, _, err = typed(capsys, *more)
    assert code == 2
    assert why in err
    assert "Traceback" not in err


def spec_of(count: int) -> AdapterSpec:
    spec = AdapterSpec(
        "parlour", "", object, abilities=("multi-seat",), seats=(2, 15),
        variant=lambda spec, options: replace(spec, seats=(count, count)),
    )  # fmt: skip
    return spec.with_options({})


def test_a_game_that_does_not_say_is_filled_to_its_fewest_seats_as_before() -> None:
    spec = AdapterSpec("parlour", "", object, abilities=("multi-seat",), seats=(2, 15))
    assert [s.name for s in plan_seats(spec, agent="random", game_options={"players": 5})] == ["seat-1", "seat-2"]


def test_the_nexus_waits_for_so_many_and_fills_the_others() -> None:
    entries = [cast(PreparedEntry, object()) for _ in range(3)]
    seated: list[Any] = []

    async def sit_down(came: Any, spec: AdapterSpec) -> str:
        seated.append(list(came))
        return "run"

    async def meet() -> list[str | None]:
        lobby = Lobby(spec_of(3), 3600.0, SystemClock(), sit_down)
        return await asyncio.wait_for(asyncio.gather(*(lobby.join(prepared) for prepared in entries)), 300)

    assert asyncio.run(meet()) == ["run"] * 3
    assert seated == [entries]
    assert seat_names(entries[:1], spec_of(3)) == ["seat-1", "seat-2", "seat-3"]


def test_who_plays_is_told_in_what_there_is_room_for() -> None:
    def label(*agents: str) -> str:
        seats = tuple(SeatPlan(f"player-{n}", agent) for n, agent in enumerate(agents, start=1))
        return RunPlan("town", seats).agent_label

    assert label("cautious", "cautious") == "cautious"
    assert label("cautious", "bold") == "player-1=cautious, player-2=bold"
    assert label("cautious", "bold", *["cautious"] * 13) == "14 cautious, 1 bold"
    long = label(*(f"{'x' * 30}{n}" for n in range(15)))
    assert len(long) == 200
    assert long.endswith("...")


FAMILY = """
from dataclasses import replace

from parlour import Chair
from wsap_core import AdapterSpec, AgentSpec, hookimpl

GUESTS = {"village": ("anna", "boris"), "inn": ("clara",)}


class Tale(Chair):
    def __init__(self, context):
        super().__init__()
        self.place = context.config["template"]
        self.guests = {}

    def seat(self, agent_id):
        return self.guests.setdefault(agent_id, Chair())


def variant(spec, options):
    names = GUESTS[options.get("template", "village")]
    several = ("multi-seat",) if len(names) > 1 else ()
    return replace(spec, abilities=several, seats=(len(names), len(names)), seat_names=names)


@hookimpl
def wsap_adapters():
    return [AdapterSpec("tale", "A tale.", "tale:Tale", title="Tale", family="template", members="tale:GUESTS.keys",
                        variant="tale:variant", seats=(1, 2))]


@hookimpl
def wsap_agents():
    return [AgentSpec("listener", "Nods.", "wsap_core.builtin.random_agents:create_random", games=("tale",))]
"""


@pytest.fixture
def tales(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "tale.py").write_text(FAMILY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    found = [*find_plugins(), FoundPlugin("tale", "tale", "wsap-tale", "1.0")]
    monkeypatch.setattr("wsap_core.host.find_plugins", lambda: found)


@pytest.mark.usefixtures("tales")
def test_a_member_of_a_family_is_listed_played_checked_and_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out

    listed = said("games", "tale")
    assert "\nvillage, inn\n" in listed
    assert "Play it: wsap play tale:village\n" in listed
    one = json.loads(said("games", "tale:inn", "--json"))
    assert (one["name"], one["seats"], one["abilities"], one["usable"]) == ("tale:inn", [1, 1], [], True)

    played = json.loads(said("play", "tale:village", "--agent", "listener", "--json"))
    assert [(seat["seat"], seat["agent"]) for seat in played["seats"]] == [("anna", "listener"), ("boris", "listener")]
    assert read_run().record.game == "tale:village"
    assert len(read_run().steps) == 4
    assert json.loads(said("runs", "--json"))[0]["game"] == "tale:village"
    record = read_run().record
    assert game_of(record, PluginHost.discovered()).seat_names == ("anna", "boris")
    older = replace(record, config={"game": "tale", "options": {"template": "gone"}})
    assert game_of(older, PluginHost.discovered()).family == "template"
    assert json.loads(said("check", "tale:inn", "--only", "spec", "--json"))["ok"]


@pytest.mark.usefixtures("tales")
@pytest.mark.parametrize("command", ["play", "games", "check"])
def test_a_member_that_is_none_is_refused_in_a_sentence(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "tale:castle"]) == 2
    err = capsys.readouterr().err
    assert "There is no game of the family 'tale' called 'castle'. There are: village, inn." in err
    assert main([command, "tael:inn"]) == 2
    assert "There is no game called 'tael'. Did you mean 'tale'?" in capsys.readouterr().err


@pytest.mark.usefixtures("tales")
def test_a_stopped_run_of_a_member_is_gone_on_with(place: Path) -> None:
    host = PluginHost.discovered()
    spec = host.games.get("tale:village")
    plan = RunPlan("tale:village", plan_seats(spec, agent="listener"))
    controls = Controls()
    with open_store(str(place / "runs.db")) as store:
        with start(plan, host, store, controls=controls, observers=[lambda step: controls.stop()]) as session:
            assert asyncio.run(session.play()).steps < 4
        with resume("last", host, store) as session:
            summary = asyncio.run(session.play())
    assert (summary.game, summary.steps, summary.done) == ("tale:village", 4, True)
    assert [seat.name for seat in summary.seats] == ["anna", "boris"]


@pytest.mark.usefixtures("tales")
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.slow
def test_a_member_of_a_family_is_entered_in_the_nexus_wherever_its_worlds_are(place: Path, workers: int) -> None:
    async def test() -> None:
        agents = {"ada": {"*": EXTERNAL}}
        host = PluginHost.discovered()
        async with nexus_at(place, agents, host=host, games=("tale:inn",), workers=workers) as nexus:
            info = nexus.nexus.entrance.game_info("tale:inn")
            assert (info.id, info.multiplayer, info.capacity) == ("tale:inn", False, 1)
            entered = await nexus.nexus.enter("ada", "tale:inn", EntryRequest())
            assert entered.session.game == "tale:inn"
            await nexus.nexus.exit("ada")

    asyncio.run(test())
