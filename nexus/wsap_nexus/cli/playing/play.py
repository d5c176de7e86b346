"""`wsap play`: plays one game, watched and recorded; resumes and repeats runs."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import SEED, STEPS, WholeNumber, complete_agents, complete_games, json_option, typed_pairs
from wsap_core.errors import WsapError
from wsap_core.loading import names_model
from wsap_core.untrusted import strip_control
from wsap_nexus.cli.common import Notices, database_option, output_console, tell_renamed
from wsap_nexus.cli.model_options import ModelRequest, model_options, refuse_key
from wsap_nexus.cli.playing.interruption import Interruption, Tail
from wsap_nexus.cli.playing.outcome import Original, add_way_on, header, original, report
from wsap_nexus.cli.playing.play_request import Request, agents_by_seat, seat_option

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.cli.playing.play_request import Seating
    from wsap_nexus.runs.plan import RunPlan, SeatPlan
    from wsap_nexus.runs.record.summary import RunSummary
    from wsap_nexus.runs.run import Run
    from wsap_nexus.runs.session import ResolvedSpecs, RunHandle
    from wsap_nexus.runs.store import Store
    from wsap_nexus.terminal.live import LiveView


@click.command(
    cls=GroupedCommand,
    sections={
        "Game": ("options", "seed", "steps", "episodes"),
        "Players": ("agent", "agent_options", "seats", "fill", "seat_options", "agents"),
        "Model": ("model", "style", "persona", "memory", "tools", "pictures", "strict", "backend_options"),
        "Limits": ("limits", "price_in", "price_out"),
        "Recording": ("resume", "replay", "database", "no_record"),
        "Watching": ("watch", "fps", "pace", "as_json", "reload"),
    },
    examples=(
        "wsap play crafter --as luna",
        "wsap play crafter --model ollama/qwen3:8b --limit tokens=200000",
        "wsap play matrix --seat row=tit-for-tat --fill random --episodes 20 --json",
    ),
)
@click.argument("game", required=False, shell_complete=complete_games)
@click.option("--agent", metavar="AGENT", shell_complete=complete_agents,
              help="The agent that plays, or a model's address; the game's default agent if not given.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed; the same seed gives the same run.")
@click.option("--steps", type=STEPS,
              help="Number of steps, over as many episodes as needed. Players who wait for each other play the episode "
              "to its end.")  # fmt: skip
@click.option("--episodes", type=STEPS, help="Number of episodes; one if neither this nor --steps is given.")
@click.option("--seat", "seats", multiple=True, metavar="NAME=AGENT", shell_complete=complete_agents,
              help="The agent, or the model's address, for one seat; may be repeated.")  # fmt: skip
@click.option("--fill", metavar="AGENT", shell_complete=complete_agents,
              help="The agent, or the model's address, for all seats that --seat does not name.")  # fmt: skip
@seat_option
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE",
              help="An option of the game (wsap games NAME lists them); may be repeated.")  # fmt: skip
@click.option("--agent-option", "agent_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the agents (wsap agents NAME lists them); may be repeated.")  # fmt: skip
@model_options
@click.option("--as", "agents", multiple=True, metavar="NAME",
              help="Play as the agent NAME, which remembers the run; SEAT=NAME with several seats.")  # fmt: skip
@click.option("--resume", metavar="RUN", help="Continue a stopped run: its id, or last.")
@click.option("--replay", metavar="RUN",
              help="Repeat a run with its recorded choices and replies, without calling a model. A step that differs "
              "from the recording ends it.")  # fmt: skip
@database_option
@click.option("--no-record", is_flag=True, help="Don't record the run.")
@json_option
@click.option("--watch/--no-watch", default=None, help="Show the live view; the default at a terminal.")
@click.option("--fps", type=WholeNumber(1, 60), default=12, show_default=True, help="Maximum frames per second.")
@click.option("--pace", type=WholeNumber(0, 100_000), default=20, show_default=True,
              help="Steps per second in the live view; 0 for full speed.")  # fmt: skip
@click.option("--reload", is_flag=True, help="Start the game anew whenever one of its files is saved.")
def play(**given: Any) -> None:
    """Play a GAME.

    GAME and AGENT are names that `wsap games` and `wsap agents` list, or a class in a file:
    ./game.py:Game. At a terminal the run is shown live; the bottom line names the keys. Every run
    is recorded: Ctrl-C stops it, and --resume continues it in the middle of its episode.

    With --json, the only output is one JSON object at the end. The exit status is 130 if the run was
    stopped by Ctrl-C, and 10 if it ended before all --episodes were played.
    """
    request = Request(models=ModelRequest.taken_from(given), **given)
    request.check()
    if request.reload:
        from wsap_nexus.cli.playing.reloading import play_anew

        assert request.game is not None, "check() comes first"
        again = [word for word in sys.argv[1:] if word != "--reload"]
        click.get_current_context().exit(play_anew(request.game, again))
    _play(request)


def _play(request: Request) -> None:
    from wsap_core.host import PluginHost
    from wsap_nexus.runs.store import open_store

    host = PluginHost.discovered()
    request = request.with_model()
    playing = _Playing(request, host, watching=request.watches())
    if request.resume is None and request.replay is None:
        plan, parts = _plan(request, host)
        request.check_plan(plan, parts)
        request.check_people(plan, parts.agents)
        if request.no_record:
            playing.unrecorded(plan, parts)
            return
    with open_store(request.database) as store:
        if request.resume is not None:
            playing.resumed(request.resume, store)
        elif request.replay is not None:
            playing.replayed(request.replay, store)
        else:
            playing.started(plan, parts, store)


def _plan(request: Request, host: PluginHost) -> tuple[RunPlan, ResolvedSpecs]:
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.runs.plan import RunPlan, plan_seats
    from wsap_nexus.runs.session import resolve_specs

    assert request.game is not None, "check() comes first"
    seating = request.seating()
    others = typed_pairs("--agent-option", request.agent_options)
    options = typed_pairs("--option", request.options)
    refuse_key(options, "--option model.api_key")
    game = load_adapter_spec(request.game, host)
    tell_renamed(game, request.game)
    seats = plan_seats(
        game,
        agent=request.models.agent(request.agent),
        seats=seating.seats,
        fill=seating.fill,
        options=request.models.agent_options(others, named=seating.names_a_model or names_model(request.agent or "")),
        game_options=options,
        host=host,
    )
    seats = seating.furnished(seats)
    if request.agents:
        seats = _as_agents(request, seating, seats, host)
    name = game.name if game.renamed(request.game) else request.game
    plan = RunPlan(name, seats, request.seed, request.steps, options, episodes=request.episodes)
    return plan, resolve_specs(plan, host)


def _as_agents(
    request: Request, seating: Seating, seats: tuple[SeatPlan, ...], host: PluginHost
) -> tuple[SeatPlan, ...]:
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.hub.outside.play_as import seat_agents
    from wsap_nexus.runs.store import open_store

    assert request.game is not None, "check() comes first"
    everywhere = request.models.agent(request.agent) or seating.fill
    decided = [seat.name for seat in seats] if everywhere is not None else list(seating.seats)
    with open_store(request.database) as store:
        return seat_agents(
            seats,
            agents_by_seat(request.agents),
            store,
            host,
            game=load_adapter_spec(request.game, host).name,
            decided=decided,
        )


class _Playing:
    """Plays a request: a new run, recorded or not, a resumed one, or a replay."""

    def __init__(self, request: Request, host: PluginHost, *, watching: bool) -> None:
        from wsap_nexus.runs.play.controls import Controls

        self._request, self._host, self._watching = request, host, watching
        self._controls = Controls()
        self._view: LiveView | None = None

    def started(self, plan: RunPlan, parts: ResolvedSpecs, store: Store) -> None:
        """Play a new run; it is deleted if `came_to_nothing`."""
        from wsap_nexus.hub.outside.play_as import start_as
        from wsap_nexus.runs.session import came_to_nothing

        around = self._around(plan, store, models_of=store)
        with start_as(plan, self._host, store, tell=Notices(), parts=parts, **around) as session:
            try:
                self._conduct(session, parts)
            except WsapError as error:
                if session.run.run_id is not None and came_to_nothing(session.run, error):
                    store.repository.delete_run(session.run.run_id)
                raise

    def resumed(self, name: str, store: Store) -> None:
        """Resume a run."""
        from wsap_nexus.hub.outside.play_as import resume_as
        from wsap_nexus.runs.plan import RunPlan
        from wsap_nexus.runs.session import refuse_run_of_nexus, resolve_specs
        from wsap_nexus.terminal.recorded import last_notes

        record = store.repository.get_run(name)
        refuse_run_of_nexus(store, record.id)
        plan = RunPlan.from_config(record.config)
        parts = resolve_specs(plan, self._host)
        tell_renamed(parts.game, plan.game)
        self._request.check_people(plan, parts.agents)
        around = self._around(plan, store, models_of=store, gone_on_with=record.id)
        with resume_as(record.id, self._host, store, tell=Notices(), **around) as session:
            past = last_notes(store.repository, record.id, len(plan.seats)) if self._view is not None else []
            self._conduct(session, parts, past=past)

    def replayed(self, name: str, store: Store) -> None:
        """Repeat a run with its recorded replies."""
        from wsap_nexus.runs.session import replies_of, resolve_specs, start

        again = original(name, store)
        plan, past = replies_of(again.run_id, store)
        parts = resolve_specs(plan, self._host, gone=past.gone)
        tell_renamed(parts.game, plan.game)
        around = self._around(plan, store)
        with start(plan, self._host, store, parts=parts, past=past, **around) as session:
            self._conduct(session, parts, again=again)

    def unrecorded(self, plan: RunPlan, parts: ResolvedSpecs) -> None:
        """Play a run that is not recorded."""
        from wsap_nexus.runs.session import unrecorded

        self._conduct(unrecorded(plan, self._host, parts=parts, **self._around(plan, None)), parts)

    def _around(
        self, plan: RunPlan, store: Store | None, *, models_of: Store | None = None, gone_on_with: str | None = None
    ) -> dict[str, Any]:
        """Return a run's controls and services, and create its view; `models_of` counts usage for limits."""
        from wsap_core.seams.services import Services

        request = self._request
        if self._watching and plan.seats:
            from wsap_nexus.terminal.live import LiveView

            flush = None if store is None else store.writer.flush
            self._view = LiveView(
                output_console(), self._controls, fps=request.fps, pace=request.pace or None, flush=flush
            )
        tell = Notices(None if self._view is None else self._view.tell)
        models = request.models.models(self._host, models_of, plan.addresses, gone_on_with=gone_on_with, tell=tell)
        return {"controls": self._controls, "services": Services(views=self._view, models=models, progress=tell)}

    def _conduct(
        self, session: RunHandle, parts: ResolvedSpecs, *, past: Sequence[Any] = (), again: Original | None = None
    ) -> None:
        from wsap_nexus.runs.gc_tuning import tune_gc

        tune_gc()
        request, view = self._request, self._view
        run = session.run
        interruption = Interruption(run.controls)
        _follow(request, run, parts, view, past, people=again is None)
        stray = Tail()
        try:
            with _kept_apart(request, view, stray):
                summary = asyncio.run(_run(session, interruption, view))
            if view is not None:
                view.print_last()
        except WsapError as error:
            add_way_on(error, run, resumed=request.resume is not None, again=again)
            raise
        except KeyboardInterrupt:
            interruption.happened = True
            summary = run.summary()
        finally:
            if text := strip_control(stray.text).strip():
                click.echo(text, err=True)
        stopped = interruption.happened
        report(run, parts, summary, interrupted=stopped, as_json=request.as_json, again=again)


async def _run(session: RunHandle, interruption: Interruption, view: LiveView | None) -> RunSummary:
    async with view.shown() if view is not None else contextlib.nullcontext():
        task = asyncio.create_task(session.play())
        # A session does not close the models it is given; these belong to this run alone.
        models: Any = session.run.services.models
        with interruption.watch(task):
            try:
                return await task
            except asyncio.CancelledError:
                interruption.happened = True
                return session.run.summary()
            finally:
                if models is not None:
                    await models.aclose()


@contextlib.contextmanager
def _kept_apart(request: Request, view: LiveView | None, stray: Tail) -> Iterator[None]:
    """Keep the output of games and agents out of the JSON and the live view."""
    with contextlib.ExitStack() as stack:
        if view is not None:
            stack.enter_context(contextlib.redirect_stdout(stray))
            stack.enter_context(contextlib.redirect_stderr(stray))
        elif request.as_json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _follow(
    request: Request, run: Run, parts: ResolvedSpecs, view: LiveView | None, past: Sequence[Any], *, people: bool
) -> None:
    from wsap_nexus.terminal.plain import PlainProgress
    from wsap_nexus.terminal.spending import spending_so_far

    if view is not None:
        playing = [name for name, spec in parts.agents.items() if people and spec.interactive]
        view.follow(run, parts.game, past=past, interactive=playing)
        run.observe(view.observe)
        return
    if request.as_json and not sys.stderr.isatty():
        return
    # Bound now, because both streams may be redirected during the run.
    stream = sys.stderr if request.as_json else sys.stdout
    progress = PlainProgress(
        lambda line: click.echo(line, file=stream),
        limit=run.plan.steps,
        seats=len(run.plan.seats),
        quiet=request.as_json,
        header="" if request.as_json else header(run),
        spending=lambda: spending_so_far(run),
        width=output_console().size.width if stream.isatty() else 100,
    )
    run.observe_ticks(progress.tick)
    progress.begin_with(sum(tally.reward for tally in run.tallies))
    run.observe(progress.observe)
