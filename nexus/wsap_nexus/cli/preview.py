"""`wsap preview`: a game as its page shows it, played by a script, in a nexus that is deleted afterwards."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import SEED, WholeNumber, json_option, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.specs import AdapterSpec
    from wsap_nexus.hub.nexus import Nexus
    from wsap_nexus.runs.store import Store

PACE = 2.0
"""Decisions per second of the agent that is watched: as fast as one can read."""
SCRIPTED, GUEST = "ada", "guest"
"""The ids of the agent that is watched, and of the one that a person plays, from its home on."""

# Any, in this module: values of a game's options.


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap preview ./game.py:Game",
        "wsap preview crafter --steps 100",
        "wsap preview matrix --option rounds=4",
    ),
)
@click.argument("game")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed.")
@click.option("--steps", type=WholeNumber(1, 100_000), default=200, show_default=True,
              help="Maximum number of steps of the run to replay.")  # fmt: skip
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game; may be repeated.")
@click.option("--port", type=WholeNumber(0, 65535), default=0, show_default="any free one", help="The port.")
@json_option
def preview(game: str, *, seed: int, steps: int, options: Sequence[str], port: int, as_json: bool) -> None:
    """Show how the page of a nexus shows GAME, until Ctrl-C.

    GAME is a name that wsap games lists, or a class in a file: ./game.py:Game. Its default agent, or a random
    one, plays it slowly on the stage; a run is there to replay, and a seat to play. Only this machine can
    open the page. All is in a temporary folder, which is deleted at the end; your agents and runs stay as
    they are.
    """
    # Deferred for weight: `wsap preview --help` needs no server.
    from wsap_core.host import PluginHost
    from wsap_nexus.runs.store import open_store

    host = PluginHost.discovered()
    given = typed_pairs("--option", options)
    asked = Preview(game, _spec(game, host, given), given, seed, steps, port, as_json)
    with tempfile.TemporaryDirectory(prefix="wsap-preview-") as folder:
        home = Path(folder)
        with open_store(str(home / "preview.db")) as store:
            asyncio.run(_serve(asked, host, store, home))


@dataclass(frozen=True)
class Preview:
    """What was asked for."""

    game: str
    """As it was typed."""
    spec: AdapterSpec
    """The game with these options."""
    options: Mapping[str, Any]
    seed: int
    steps: int
    port: int
    as_json: bool

    @property
    def played(self) -> AdapterSpec:
        """The game as it is with these options."""
        return self.spec.with_options({})

    @property
    def agent(self) -> str:
        """The agent that plays: the game's own, or instead of random ones, one that does what is legal."""
        own = self.played.default_agent
        return "random-legal" if own == "random" else own


def _spec(game: str, host: PluginHost, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the game, with options that every world of it has.

    Raises:
        UsageError: the options are invalid, or the game lives without agents.
        WsapError: there is no such game, or it can't be created.
    """
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.worlds.port import LocalWorld

    spec = load_adapter_spec(game, host)
    played = spec.with_options(options)
    if "lives" in played.abilities:
        raise UsageError(
            f"{spec.name!r} is a world that lives; a nexus shows it: wsap nexus start --world {single_line(game)}"
        )
    LocalWorld(played, 0, options)  # refuses what a world of the game would refuse, before anything is served
    return replace(spec, preset={**spec.preset, **options})


async def _serve(asked: Preview, host: PluginHost, store: Store, home: Path) -> None:
    from wsap_nexus.dashboard.key import OneTimeKey
    from wsap_nexus.http.listening import Address
    from wsap_nexus.http.signals import told_to_stop
    from wsap_nexus.server.serve import serve
    from wsap_nexus.tasks import ended

    hub, key = _hub(asked, host, store), OneTimeKey()
    playing: list[asyncio.Task[None]] = []

    def at_once() -> None:
        shutil.rmtree(home, ignore_errors=True)  # the process ends without leaving any block

    with told_to_stop(lambda: None, at_once, at_once) as told:

        def ready(url: str) -> None:
            task = asyncio.create_task(_begin(asked, host, hub, f"{url}{key.fragment}", url))
            task.add_done_callback(lambda done: told.set() if done.cancelled() or done.exception() else None)
            playing.append(task)

        try:
            await serve(hub, Address("127.0.0.1", asked.port), home / "token", ready=ready, until=told, key=key)
        finally:
            failed = [task.exception() for task in playing if task.done() and not task.cancelled()]
            await ended(*playing)
    for error in failed:
        if error is not None:
            raise error


def _hub(asked: Preview, host: PluginHost, store: Store) -> Nexus:
    from wsap_core.hookspecs import hookimpl
    from wsap_nexus.hub.nexus import Nexus
    from wsap_nexus.hub.settings import Settings
    from wsap_nexus.store.entities import EXTERNAL, Policy

    spec = asked.spec
    if spec.name.partition(":")[0] not in host.games.names():  # a game in a file: its runs are read by its name
        host.register(SimpleNamespace(wsap_adapters=hookimpl(lambda: [spec])), "preview")
    # Nobody else comes, so nobody is waited for.
    hub = Nexus(host, store, Settings(seed=asked.seed, pace=PACE, games=(spec.name,), lobby_seconds=0.0))
    hub.catalog.known[spec.name] = spec
    with hub.nexus_store.change() as tx:
        tx.register(SCRIPTED, name="Ada", policies={"nexus": Policy("wanderer"), spec.name: Policy(asked.agent)})
        tx.register(GUEST, name="Guest", policies={"*": EXTERNAL})
    return hub


async def _begin(asked: Preview, host: PluginHost, hub: Nexus, opening: str, url: str) -> None:
    """Play the run to replay, let the scripted agent in, and print the addresses."""
    from wsap_nexus.store.entities import EntryRequest

    run = await _play(asked, host, hub)
    await hub.enter(SCRIPTED, asked.spec.name, EntryRequest())
    replay, seat = f"{url}#/run/{run}", f"{url}#/play/{GUEST}"
    if asked.as_json:
        print_json({"stage": opening, "replay": replay, "play": seat, "run": run})
        return
    title = single_line(asked.played.display_title)
    click.echo(f"The preview of {title} is up. Ctrl-C ends it and deletes everything.")
    click.echo(f"Stage, open this once:        {opening}")
    click.echo(f"Replay, then in the same tab: {replay}")
    click.echo(f'Play, also in that tab:       {seat}  (press "enter game")')


async def _play(asked: Preview, host: PluginHost, hub: Nexus) -> str:
    """Record one episode, played by the script, and return its run."""
    from wsap_nexus.runs.plan import RunPlan, plan_seats
    from wsap_nexus.runs.session import start

    seats = plan_seats(asked.spec, agent=asked.agent, game_options=asked.options, host=host)
    plan = RunPlan(asked.game, seats, asked.seed, asked.steps, dict(asked.options), episodes=1)
    with start(plan, host, hub.store) as session:
        await session.play_for_json()
        return str(session.run.run_id)
