"""A game's spec in another process is the same as at home: over HTTP, in a worker, and in the process of a check."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fastapi import FastAPI

import wsap_core
from wsap_core.errors import PluginError, UsageError, WireError, WorldError
from wsap_core.host import PluginHost
from wsap_core.protocol import Achievement, Action, ActionResult, Bonus, Observation, TransferRule
from wsap_core.protocol.wire import dumps
from wsap_core.spec_json import spec_of_json, spec_to_json
from wsap_core.specs import AdapterSpec, OptionDef, ScoreMetric, problems_of
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.http.access.guard import HttpLimits
from wsap_nexus.http.listening import Address, listen
from wsap_nexus.http.serving import HttpServer
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.worlds.remote.game_client import GameClient
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.remote.serve_world import spec_for, world_app
from wsap_nexus.worlds.workers.pool import WorkerPool

# Any, in this module: JSON, and the values of fields.

FIELDS = [f.name for f in dataclasses.fields(AdapterSpec)]
STAYS = {"factory"}
"""What another process has of its own; every other field is told."""
ONLY_HERE = {"lives", "influence", "irreversible"}
"""Abilities of worlds that run in the nexus' own process."""


def a_score(episodes: Any) -> float:
    return float(len(episodes))


_RULE = TransferRule("axe", "crafting", 0.5, Bonus("item", "axe", 2.0), "an axe at the start")
DIFFERENT = AdapterSpec(
    name="other", summary="Another.", factory="nowhere:Game", title="The Other", abilities=("seed", "messages"),
    seats=(2, 5), seat_names=("left", "right"), variant="nowhere:variant", family="kind", members="nowhere:members",
    preset={"size": 3, "deep": {"list": [1, 2.5, None, True]}}, language="ru", timing="phased", deadline=2.5,
    default_action=Action("wait", {"turns": 2}), default_agent="someone",
    score_metrics=(ScoreMetric("mean", "The mean.", "nowhere:mean", "points", -1.5, 10.0, True, "lower"),),
    achievements=(Achievement("first", "The first.", rarity="rare"),), wire_types=("nowhere:Seen",),
    meters={"health": 9.5},
    skills={"crafting": ("make_table", "make_axe")}, transfer_rules=(_RULE,), terms={"spawn": ("safe",)},
    max_avatars=7, max_worlds=9, genre="survival", dimensions="3D", persistent=True, blocking=True, asks_models=True,
    former_names=("old-one",),
    complete_turns=True, brief="Short.", vocabulary=("axe", "dig"), objective="Win.", look_back="wsap look {run}",
    run_views="nowhere:views", options=(OptionDef("size", "The size.", "3", "1-10"),), protocol_version="1.9.9",
)  # fmt: skip
"""A spec of which no field has its default, so that a field that gets lost is missed."""


def over_json(spec: AdapterSpec, **how: Any) -> AdapterSpec:
    return spec_of_json(json.loads(dumps(spec_to_json(spec))), spec.factory, **how)


def told(spec: AdapterSpec) -> dict[str, Any]:
    """Return the fields of a spec with code by its reference."""
    return {name: by_reference(getattr(spec, name)) for name in FIELDS if name not in STAYS}


def by_reference(value: Any) -> Any:
    if isinstance(value, ScoreMetric):
        return replace(value, compute=by_reference(value.compute))
    if isinstance(value, tuple):
        return tuple(map(by_reference, value))
    return f"{value.__module__}:{value.__qualname__}" if callable(value) else value


@cache
def installed() -> PluginHost:
    return PluginHost.discovered()


def games() -> Iterator[AdapterSpec]:
    for entry in installed().games.all():
        yield entry.spec
        if entry.spec.family:
            playable = [name for name, why_not in entry.spec.known_members().items() if not why_not]
            yield entry.spec.member((playable or ["one"])[0])


def test_all_fields_have_another_value_than_their_default_in_the_example() -> None:
    common = [name for name in FIELDS if getattr(DIFFERENT, name) == getattr(AdapterSpec("", "", ""), name)]
    assert common == [], "give these fields of AdapterSpec another value in DIFFERENT"


def test_no_field_of_a_spec_gets_lost() -> None:
    assert told(over_json(DIFFERENT)) == told(DIFFERENT)
    assert set(spec_to_json(DIFFERENT)) | STAYS == set(FIELDS)
    assert problems_of(over_json(DIFFERENT)) == []


def test_a_field_that_is_added_is_told_without_another_word() -> None:
    @dataclasses.dataclass(frozen=True)
    class Grown(AdapterSpec):
        tomorrow: tuple[int, ...] = ()

    assert spec_to_json(Grown("x", "X.", "", tomorrow=(1, 2)))["tomorrow"] == [1, 2]


def test_every_installed_game_is_the_same_after_a_journey_as_json() -> None:
    for spec in games():
        assert told(over_json(spec)) == told(spec)
        assert problems_of(over_json(spec)) == []


def test_code_that_no_other_process_can_find_is_left_out() -> None:
    metrics = (ScoreMetric("a", "A.", lambda episodes: 1.0), ScoreMetric("b", "B.", a_score))
    spec = AdapterSpec(
        "x", "X.", "", variant=lambda spec, options: spec, wire_types=(lambda: 1,), score_metrics=metrics
    )
    assert spec_to_json(spec)["variant"] is None
    found = over_json(spec)
    assert (found.variant, found.wire_types) == (None, ())
    assert [metric.name for metric in found.score_metrics] == ["b"]


def test_code_in_a_file_is_loaded_from_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def variant(spec, options):\n    return spec\n", encoding="utf-8")
    found = over_json(replace(DIFFERENT, variant=f"{file}:variant"))
    assert callable(found.variant)
    file.write_text("import nowhere_at_all\n", encoding="utf-8")
    with pytest.raises(PluginError):
        over_json(replace(DIFFERENT, variant=f"{file}:variant"))


def test_code_agents_and_commands_that_are_not_trusted_are_left_out() -> None:
    asked: list[str] = []
    found = over_json(DIFFERENT, trusted=lambda text: asked.append(text) or False)  # type: ignore[func-returns-value]
    plain = AdapterSpec("", "", "")
    code = {"variant", "members", "default_agent", "score_metrics", "wire_types", "look_back", "run_views"}
    assert {name for name in FIELDS if told(found).get(name) != told(DIFFERENT).get(name)} == code
    assert all(getattr(found, name) == getattr(plain, name) for name in code)
    assert len(asked) == len(code)


def test_fields_and_words_of_a_newer_version_are_left_out() -> None:
    data = {**spec_to_json(DIFFERENT), "tomorrow": 1, "timing": "backwards"}
    found = spec_of_json(data, DIFFERENT.factory)
    assert found == replace(DIFFERENT, timing="free")
    assert spec_of_json({"name": "x", "summary": "X.", "title": None}, "") == AdapterSpec("x", "X.", "")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": None}, "It has no name."),
        ({"options": [{"summary": "No name."}]}, "It has no name."),
        ({"achievements": [{"name": 5}]}, "The Achievement is not a valid Achievement: name: "),
    ],
)
def test_what_lacks_its_name_or_is_no_value_of_the_protocol_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(WireError, match=re.escape(why)):
        spec_of_json({"name": "x", "summary": "X.", **wrong}, "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": 5}, {"seats": "many"}, {"seats": [1, 2, 3]}, {"seats": ["1", "2"]}, {"seat_names": {"a": 1}},
        {"seat_names": "abc"}, {"options": [{"name": 5, "summary": ""}]}, {"options": "none"}, {"skills": [1]},
        {"deadline": True}, {"persistent": 1}, {"max_worlds": 0}, {"preset": [1]}, {"achievements": 3},
        {"meters": {"health": "much"}},
    ],
    ids=str,
)  # fmt: skip
def test_values_of_another_form_are_reported(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    (problem,) = problems_of(spec_of_json({"name": "x", "summary": "X.", **wrong}, ""))
    assert problem.startswith(f"{name} is ")


# --- over HTTP ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(apps: Mapping[str, FastAPI]) -> Any:
    """Serve bridges at paths of one address, and give that."""
    house, up = FastAPI(), asyncio.get_running_loop().create_future()
    for name, app in apps.items():
        house.mount(f"/{name}", app)
    with listen(Address(port=0)) as listening:
        server = HttpServer(house, listening, HttpLimits(), ready=lambda url: up.set_result(url.rstrip("/")))
        running = asyncio.create_task(server.run())
        try:
            yield await up
        finally:
            server.end()
            await running


def elsewhere(*specs: AdapterSpec, host: PluginHost | None = None) -> list[AdapterSpec]:
    """Serve games over HTTP, and return what a nexus reads of them."""

    async def ask() -> list[AdapterSpec]:
        found = []
        async with served({str(number): world_app(spec) for number, spec in enumerate(specs)}) as url:
            for number in range(len(specs)):
                client = GameClient(f"{url}/{number}")
                found.append(read_spec(await client.ask("GET", "/"), client, host or installed()))
                await client.close()
        return found

    return asyncio.run(ask())


@pytest.mark.slow
def test_every_installed_game_is_the_same_when_it_is_served_over_http() -> None:
    at_home = [spec for spec in games() if not spec.stays_home]
    # A nexus names games without colons and slashes.
    named = [replace(spec, name=re.sub("[^a-z0-9-]+", "-", spec.name.lower())) for spec in at_home]
    for spec, found in zip(named, elsewhere(*named), strict=True):
        expected = told(spec) | {"abilities": tuple(a for a in spec.abilities if a not in ONLY_HERE)}
        if spec.name not in installed().games.names():  # the agents of a family play it by its own name
            expected["default_agent"] = found.default_agent
        of_a_machine = {option.name for option in spec.options if option.names not in ("", "model")}
        expected["preset"] = {name: value for name, value in spec.preset.items() if name not in of_a_machine}
        assert told(found) == expected
        assert isinstance(found.factory, GameClient)
    assert {"crafter", "matrix", "minigrid", "morrowind", "tossim"} <= {spec.name for spec in at_home}


def test_a_game_that_stays_home_is_not_served() -> None:
    for spec in (spec for spec in games() if spec.stays_home):
        with pytest.raises(UsageError, match="can't be served"):
            world_app(spec)


def test_every_field_of_a_game_that_is_not_installed_is_told_but_what_would_run_here() -> None:
    spec = replace(DIFFERENT, asks_models=False, protocol_version=wsap_core.version.PROTOCOL_VERSION)
    (found,) = elsewhere(spec)
    plain = AdapterSpec("", "", "")
    code = ("variant", "members", "default_agent", "score_metrics", "wire_types", "look_back", "run_views")
    assert told(found) == told(spec) | {name: getattr(plain, name) for name in code}


class Pond:
    """Still water."""

    wsap_spec: ClassVar[dict[str, Any]] = {"objective": "Catch a fish.", "brief": "A pond.", "vocabulary": ["fish"]}

    def observe(self) -> Observation:
        return Observation()

    def act(self, action: Action) -> ActionResult:
        return ActionResult(self.observe())

    def reset(self, seed: int | None = None) -> Observation:
        return self.observe()


def test_what_a_class_declares_of_its_game_is_served() -> None:
    for game in (Pond, Pond()):
        (found,) = elsewhere(spec_for(game, "far-pond", {"seats": (1, 3)}))
        assert (found.name, found.summary, found.seats) == ("far-pond", "Still water.", (1, 3))
        assert (found.objective, found.brief, found.vocabulary) == ("Catch a fish.", "A pond.", ("fish",))
        assert found.abilities == ("seed",)
    assert spec_for("matrix", "", {}) == installed().games.get("matrix")


def test_a_preset_option_that_is_not_json_is_refused_where_the_game_is_served() -> None:
    with pytest.raises(WireError, match="can't be encoded as JSON"):
        world_app(replace(DIFFERENT, asks_models=False, preset={"file": Path()}))


def read(**more: Any) -> AdapterSpec:
    game = {"name": "far", "protocol_version": wsap_core.version.PROTOCOL_VERSION, **more}
    return read_spec({"game": game}, GameClient("http://127.0.0.1:7801"), installed())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "a b"}, "'a b' can't be a game's name"),
        ({"name": "x" * 81}, "can't be a game's name"),
        ({"name": 5}, "5 can't be a game's name"),
        ({"seats": [1, 1001]}, "it has 1001 seats; at most 1000 are allowed"),
        ({"seats": [0, 1]}, r"seats is \(0, 1\)"),
        ({"objective": "x" * 4001}, "a text of objective has 4001 characters; at most 4000 are allowed"),
        ({"options": [{"name": "n", "summary": "x" * 4001}]}, "a text of options has 4001"),
        ({"preset": {"x" * 4001: 1}}, "a text of preset has 4001"),
        ({"vocabulary": ["word"] * 200_000}, "bytes; at most 1048576 are allowed"),
        ({"tomorrow": "x" * 2**20}, "bytes; at most 1048576 are allowed"),
        ({"summary": ["x"]}, "summary is "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_description_that_is_too_large_or_of_another_form_is_refused_in_a_sentence(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(WorldFailedError, match=why) as caught:
        read(**wrong)
    assert str(caught.value).startswith("The description of the game at http://127.0.0.1:7801 is invalid: ")
    assert len(str(caught.value)) < 300


def test_short_texts_are_cut_as_they_always_were() -> None:
    found = read(title="t" * 100, summary="s" * 1000, genre="g" * 100, dimensions="d" * 100, language="l" * 100)
    assert [len(getattr(found, n)) for n in ("title", "summary", "genre", "dimensions", "language")] == [
        80, 500, 80, 80, 20
    ]  # fmt: skip


def test_a_remote_game_can_not_name_what_runs_here() -> None:
    """Neither a module to import, nor a file, an agent of the owner, a person's agent, or a command to type."""
    found = read(
        default_agent="./evil.py:Agent", wire_types=["this:d", "wsap_core.__main__:x"], variant="os:abort",
        run_views="os:abort", members="os:abort", look_back="rm -rf ~",
        score_metrics=[{"name": "s", "summary": "S.", "compute": "os:system"}],
    )  # fmt: skip
    plain = AdapterSpec("far", "far", found.factory, max_avatars=1)
    assert found == plain
    assert "this" not in sys.modules
    assert read(default_agent="human").default_agent == "random"  # no installed game names it
    assert read(default_agent="crafter-survivor").default_agent == "random"  # it plays another game
    assert read(name="crafter", default_agent="crafter-survivor").default_agent == "crafter-survivor"


# --- in a worker --------------------------------------------------------------------------------------------

PROBE = '''
"""A game that writes down the spec that its world was created with."""
import pickle, sys
from dataclasses import fields
from wsap_core.errors import UsageError

def create(context):
    frame = sys._getframe()
    while frame.f_code.co_qualname != "LocalWorld.__init__":
        frame = frame.f_back
    spec = frame.f_locals["spec"]
    with open(context.config["to"], "wb") as file:
        pickle.dump({f.name: getattr(spec, f.name) for f in fields(spec) if f.name != "factory"}, file)
    raise UsageError("It was written.")
'''


def test_every_installed_game_is_the_same_in_a_worker(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE, encoding="utf-8")
    different = replace(DIFFERENT, variant="wsap_matrix.game:with_bounds")  # called on the way to the factory
    # Of one name, so that one worker has them all.
    specs = [replace(spec, name="probe") for spec in (*games(), different)]

    async def run() -> None:
        pool = WorkerPool(1)
        try:
            for number, spec in enumerate(specs):
                options = {"to": str(tmp_path / str(number))}
                world = RemoteWorld(spec, 5, options, factory=f"{probe}:create", pool=pool)
                with pytest.raises(WorldError, match="It was written"):
                    await world.begin(5)
                await world.close()
        finally:
            await pool.close()

    asyncio.run(run())
    for number, spec in enumerate(specs):
        fields = pickle.loads((tmp_path / str(number)).read_bytes())
        assert told(AdapterSpec(factory="", **fields)) == told(spec)
