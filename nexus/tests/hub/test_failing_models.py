"""Worlds that live while a model that they ask fails: they wait, and nobody else is blamed or sent home."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import hub_checks
import pytest
from life_kit import Hasty, Place, Script, host_with, nexus_at

from wsap_core import Action
from wsap_core.host import Registration
from wsap_core.seams.model import OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError, BadRequestError, BudgetReachedError, NoServerError
from wsap_core.seams.services import Player
from wsap_core.specs import BackendSpec
from wsap_llm.backends.pool import ModelPool, RequestPolicy
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.starting import StartingError
from wsap_nexus.errors import GameUnavailableError
from wsap_nexus.hub.outside.external import SeatLeftError
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.hub.waiting.waits import waits
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.routes import overview
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.entities import EXTERNAL, EntryRequest
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds.workers import frames

RUN = "nexus-village"
GAME = "sandbox:village"


class Fickle:
    """A model that fails while it is told to."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self.error = error
        self.fails = False
        self.failed = 0

    def __call__(self, request: Request) -> str:
        if self.fails:
            self.failed += 1
            raise self.error()
        return '{"intention": "I look around."}'


@asynccontextmanager
async def village(path: Path, model: Fickle, clock: Hasty, *, workers: int = 0) -> AsyncIterator[Place]:
    worlds = (KeptWorld("village", GAME, {"language": "en", "model": "script/it"}),)
    agents = {name: {"*": EXTERNAL} for name in ("ann", "bob")}
    host = host_with(script=Script({"intent": model}))
    async with nexus_at(
        path, agents, host=host, games=("echo",), worlds=worlds, workers=workers, clock=clock, patience=3000.0
    ) as place:
        yield place


def ticks(place: Place) -> list[int]:
    return [event.step or 0 for event in place.logged(RUN, "tick")]


async def stands_still(place: Place, model: Fickle) -> None:
    """Have the model fail while ann waits for what comes of her action, until the world has tried it twice again."""

    async def act() -> None:
        while True:  # the model may have been asked for this tick before
            seat, _ = await place.nexus.live.external.observation("ann")
            await seat.act(Action("wait"))

    model.fails = True
    with pytest.raises(SeatLeftError):
        await act()
    await place.until(lambda: "village" in place.nexus.live.models and place.nexus.live.models["village"].tries > 2)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "error",
    [
        lambda: KeyError("choices"),
        lambda: OSError(5, "It can't be read."),
        lambda: BadRequestError("The request is invalid."),
        lambda: BudgetReachedError("The budget is used up."),
        pytest.param(lambda: NoServerError("Nobody is there."), marks=pytest.mark.slow),  # it is tried again in earnest
    ],
)
def test_a_world_waits_for_its_model_and_keeps_its_agents(
    tmp_path: Path, error: Callable[[], Exception], workers: int
) -> None:
    model, clock = Fickle(error), Hasty()

    async def test() -> None:
        async with village(tmp_path, model, clock, workers=workers) as place:
            await place.nexus.enter("ann", GAME, EntryRequest(world="village", seat="anna"))
            await stands_still(place, model)
            nexus = place.nexus
            assert not place.events("game_failed", "world_crashed", "left", "agent_failed", "world_rewound")
            assert nexus.breaker.of(GAME).status == "available"
            with nexus.nexus_store.look() as tx:
                assert (tx.agent("ann").place, tx.agent("ann").state) == ("world", "active")
            (wait,) = waits(nexus.live, after=0.0)
            assert (wait.who, wait.kind) == ("village", "model")
            why = "choices" if "choices" in str(error()) else str(error()).rstrip(".")
            assert why in wait.text
            if isinstance(error(), KeyError | OSError):
                assert "The backend of script/it raised" in wait.text
            (info,) = [info for info in nexus.entrance.games() if info.id == GAME]
            assert (info.status, info.reason) == ("maintenance", "The world 'village' waits for its model.")
            with pytest.raises(GameUnavailableError, match="waits for its model"):
                await nexus.enter("bob", GAME, EntryRequest())
            before = len(ticks(place))
            model.fails = False
            await place.until(lambda: len(ticks(place)) > before)
            seat, _ = await nexus.live.external.observation("ann")
            await seat.act(Action("wait"))
            assert not nexus.live.models
            assert not place.events("game_failed", "world_crashed", "left", "agent_failed", "world_rewound")
        assert not hub_checks.problems(place.nexus.store.database)

    asyncio.run(test())
    pauses = [pause for pause in clock.waited if pause in (1.0, 2.0, 4.0)]
    assert {1.0, 2.0, 4.0} <= set(pauses)


@pytest.mark.parametrize("way", ["exit", "recall", "offline"])
def test_an_agent_in_a_world_that_waits_for_its_model_can_be_brought_home(tmp_path: Path, way: str) -> None:
    model = Fickle(lambda: BadRequestError("Nobody is there."))

    async def test() -> None:
        async with village(tmp_path, model, Hasty()) as place:
            await place.nexus.enter("ann", GAME, EntryRequest(world="village", seat="anna", goals=("rest",)))
            await stands_still(place, model)
            match way:
                case "exit":
                    assert (await place.nexus.exit("ann")).reason == "kicked"
                case "recall":
                    await place.until(lambda: place.nexus.recall("ann"))
                case "offline":
                    place.nexus.set_game_status(GAME, "offline", "a pause")
            (left,) = await place.until_events("left", agent="ann")
            assert left.body["reason"] == ("game_offline" if way == "offline" else "kicked")
            with place.nexus.nexus_store.look() as tx:
                assert (tx.agent("ann").place, tx.agent("ann").state) == ("nexus", "active")
            place.nexus.set_game_status(GAME, "available")
            before = len(ticks(place))
            model.fails = False
            await place.until(lambda: len(ticks(place)) > before + 1)
            assert not hub_checks.problems(place.nexus.store.database)
            await place.nexus.enter("ann", GAME, EntryRequest(world="village", seat="anna"))
            assert not place.events("game_failed", "world_rewound")

    asyncio.run(test())


class Slow(ScriptedBackend):
    """Answers after everybody was asked; fails in one character's intention while it is told to."""

    def __init__(self) -> None:
        super().__init__([], model="script/it")
        self.fails = False
        self.failed = 0
        self.asked: Counter[str] = Counter()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        if request.purpose != "intent":
            return Reply("{}")
        if self.fails and "/intent/vera/" in request.key:
            self.failed += 1
            raise KeyError("choices")
        self.asked[request.key] += 1
        for _ in range(50 * TURNS):  # longer than the failure takes to be noticed
            await asyncio.sleep(0)
        return Reply('{"intention": "I look around."}')


def test_calls_in_flight_beside_one_that_fails_are_paid_once(tmp_path: Path) -> None:
    model = Slow()

    async def test() -> None:
        host = host_with()
        host.backends.add(Registration(BackendSpec("script", "A slow model.", lambda context: model), "kit", "tests"))
        worlds = (KeptWorld("village", GAME, {"language": "en", "model": "script/it"}),)
        async with nexus_at(tmp_path, {}, host=host, games=("echo",), worlds=worlds, clock=Hasty()) as place:
            await place.until(lambda: len(ticks(place)) >= 1)
            model.fails = True
            await place.until(lambda: model.failed >= 4)
            model.fails = False
            before = len(ticks(place))
            await place.until(lambda: len(ticks(place)) > before + 1)
        assert not [key for key, times in model.asked.items() if times > 1]

    asyncio.run(test())


def test_attention_names_a_world_that_waits_for_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Fickle(lambda: BadRequestError("Nobody is there."))
    monkeypatch.setattr(overview, "ATTENTION_AFTER", 0.0)

    async def test() -> None:
        async with village(tmp_path, model, Hasty()) as place:
            await place.nexus.enter("ann", GAME, EntryRequest(world="village", seat="anna"))
            await stands_still(place, model)
            (item,) = overview._waiting(place.nexus)
            assert (item["kind"], item["id"]) == ("world", "village")
            assert item["what"].startswith("village waits for its model (Nobody is there, ")

    asyncio.run(test())


def test_a_backends_own_kind_of_failure_is_read_as_the_kernels_after_its_way_through_a_worker() -> None:
    class Sulking(BadRequestError):
        """A plugin's own class."""

    assert type(frames.read_error(frames.error_body(Sulking("no")))) is BadRequestError
    loading = frames.read_error(frames.error_body(StartingError("It loads.")))
    assert isinstance(loading, BackendError)
    assert str(loading) == "It loads."
    assert not isinstance(frames.read_error(frames.error_body(BackendError("down"))), BadRequestError)


@pytest.mark.parametrize("error", [lambda: KeyError("choices"), lambda: OSError(5, "no"), lambda: TimeoutError("slow")])
def test_an_agent_whose_backend_has_a_defect_does_not_fail_itself(
    tmp_path: Path, error: Callable[[], Exception]
) -> None:
    """Otherwise an evaluation would take the episode for lost by the agent."""
    model = Fickle(error)
    model.fails = True
    host = host_with(script=Script({"decide": model}))
    with open_store(str(tmp_path / "runs.db")) as store:
        pool = ModelPool(host, policy=RequestPolicy(attempts=1))
        players = {"seat-1": Player("llm", {"model": "script/it", "plan": False})}
        with pytest.raises(BackendError, match=f"script/it raised {type(error()).__name__}"):
            asyncio.run(StoreRunner(host, store, pool).play("echo", players, run="r", steps=3))
    assert model.failed == 1
