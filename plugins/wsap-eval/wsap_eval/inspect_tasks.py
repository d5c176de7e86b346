"""`inspect eval wsap_eval/game -T game=NAME`: games as tasks of Inspect, which finds this module by its entry point."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelOutput,
    execute_tools,
    get_model,
    model_roles,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolDef, ToolParams
from rich.markup import escape

from wsap_core.errors import AgentError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.model_errors import BudgetReachedError, ForcedDecisionsError
from wsap_core.seams.services import Player, RunReader, Services, runtime_services
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_core.untrusted import error_line, single_line, strip_control
from wsap_eval.inspect_backend import IN_EVALUATION, InEvaluation
from wsap_eval.planning.plan import Game, Job, games_of
from wsap_eval.planning.suite import FORFEIT, Entrant, GameEntry, Suite, made
from wsap_eval.play import broken_off, record_of
from wsap_eval.records import EpisodeKey, EpisodeRecord

# Any, in this module: options have values of any type, and events of runs are JSON.

_METADATA = "wsap"
"""The key of a sample's metadata with what was played."""


class EpisodeFailedError(Exception):
    """An episode could not be played: an outage of the model's provider, or an error of the game or an opponent."""


@task  # type: ignore[untyped-decorator]  # Inspect's types are not there everywhere
def game(
    game: str,
    seeds: int | str | Sequence[int] = 10,
    steps: int | None = None,
    options: Mapping[str, JsonValue] | None = None,
    legal: str = "bound",
    seat: str | None = None,
    opponent: str | None = None,
    agent_options: Mapping[str, JsonValue] | None = None,
    database: str | None = None,
) -> Task:
    """Return a task of a game; each sample is an episode on a seed, each epoch a repeat.

    Args:
        game: a registered game, or `./file.py:Name`.
        seeds: how many, `first-last`, or a list of them.
        steps: most decisions of a seat in an episode.
        options: options of the game.
        legal: how the model is told what is legal: `bound`, `shown` or `hidden`.
        seat: the model's seat in a game of several; by default the first. A seat that is a model role (`--model-role
            row=openai/gpt-5`) is played by that model.
        opponent: the agent in the other seats; by default the game's own.
        agent_options: options of the agent `llm`, such as `{"memory": "facts"}`.
        database: where the runs are recorded; by default as everywhere.

    Raises:
        PrerequisiteError: the game is unknown, or an option is invalid; Inspect shows it without a traceback.
    """
    try:
        table = _table(game, steps, options or {}, legal, seat, opponent, agent_options or {})
        samples = [Sample(id=each, input=f"{game}, seed {each}", metadata={"seed": each}) for each in seeds_of(seeds)]
    except WsapError as error:
        raise PrerequisiteError(escape(str(error))) from error
    return Task(
        name=game,
        dataset=MemoryDataset(samples, name=game),
        solver=episode(table, database),
        scorer=[*_scorers(table.game), forfeited()],
        metadata={"game": game, "options": dict(table.game.entry.options), "steps": steps, "legal": legal},
    )


def _table(
    game: str,
    steps: int | None,
    options: Mapping[str, JsonValue],
    legal: str,
    seat: str | None,
    opponent: str | None,
    agent_options: Mapping[str, JsonValue],
) -> _Table:
    what = f"The task {single_line(game)[:60]!r}"
    entry = made(what, GameEntry, {"game": game, "options": options, "steps": steps, "legal": legal})
    model = made(f"{what}, of agent_options,", Entrant, {"agent": "llm", "options": agent_options})
    suite = Suite(name=game, games=(entry,), entrants=(model,))
    played = games_of(suite, PluginHost.discovered())[entry.name]
    names = played.spec.names_of_seats(played.spec.seats[0])
    if seat is not None and seat not in names:
        raise UsageError(f"The game {game!r} has no seat {single_line(seat)[:60]!r}; there are: {', '.join(names)}.")
    return _Table(played, names, seat or names[0], opponent or played.spec.default_agent, model.options)


def seeds_of(given: object) -> list[int]:
    """Return the seeds of `5`, `"10-19"` or a list; `UsageError` for anything else."""
    if isinstance(given, str):
        first, dash, last = given.partition("-")
        if first.isdecimal() and (last.isdecimal() or not dash):
            found = list(range(int(first), int(last) + 1)) if dash else list(range(int(first)))
            if found:
                return found
    elif isinstance(given, int):
        if given > 0:
            return list(range(given))
    elif isinstance(given, list | tuple) and given and all(isinstance(each, int) and each >= 0 for each in given):
        return list(given)
    raise UsageError(f"seeds is a number, FIRST-LAST or a list of numbers, not {single_line(given)[:60]!r}.")


# --- playing -----------------------------------------------------------------------------------


class _Table:
    """Who plays which seat."""

    def __init__(
        self, game: Game, names: Sequence[str], seat: str, opponent: str, options: Mapping[str, JsonValue]
    ) -> None:
        self.game, self._names, self._seat, self._opponent, self._options = game, names, seat, opponent, options

    def job(self, seed: int, epoch: int, run: str) -> tuple[Job, dict[str, Model]]:
        """Return an episode, and the models that play in it by their addresses."""
        roles = {name: found for name in self._names if (found := _role(name)) is not None}
        models = {name: roles.get(name) or get_model() for name in {*roles, self._seat}}
        addresses = {name: f"inspect/{model}" for name, model in models.items()}
        seats = {
            name: Entrant(agent=addresses[name], options=self._options)
            if name in addresses
            else Entrant(agent=self._opponent)
            for name in self._names
        }
        key = EpisodeKey(self.game.entry.name, seats[self._seat].name, seed, epoch - 1)
        job = Job(key, self.game.entry, seats[self._seat], seats, (self._seat,), run, forfeit=FORFEIT)
        return job, {addresses[name]: model for name, model in models.items()}


def _role(name: str) -> Model | None:
    found = model_roles().get(name)
    return found[0] if isinstance(found, list) else found


@solver  # type: ignore[untyped-decorator]
def episode(table: _Table, database: str | None = None) -> Solver:
    """Return a solver that plays an episode as a recorded run, with the prompts and the parser of the agent `llm`."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        run = f"inspect-{state.uuid}"
        job, models = table.job(state.metadata["seed"], state.epoch, run)
        with runtime_services(database) as services:
            told = _Told(services.require("runs"), job, state)
            around = InEvaluation(models, told.catch_up)
            token = IN_EVALUATION.set(around)
            try:
                record = await _played(services, table.game, job)
                await told.catch_up()
            except BudgetReachedError as error:
                await told.catch_up()
                raise (around.ended or error) from None
            finally:
                IN_EVALUATION.reset(token)
                models_of: Any = services.models
                await models_of.aclose()
        if record.outcome == "failed":
            raise EpisodeFailedError(record.reason)
        state.metadata[_METADATA] = _told_of(record)
        state.completed = True
        return state

    return solve


async def _played(services: Services, game: Game, job: Job) -> EpisodeRecord:
    """Play an episode. A model whose replies can't be used forfeits it; an outage raises."""
    started, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    players = {name: Player(each.agent, _options(job, each)) for name, each in job.seats.items()}
    entry = job.entry
    try:
        summary = await services.require("runner").play(
            entry.game, players, seed=job.key.seed, options=dict(entry.options), run=job.run, steps=entry.steps
        )
    except (AgentError, ForcedDecisionsError) as error:
        if isinstance(error, AgentError) and error.seat not in job.own:
            raise EpisodeFailedError(error_line(error)) from error
        runs, seconds = services.require("runs"), time.monotonic() - begun
        return broken_off(runs, game, job, error_line(error), started, seconds)
    return record_of(game, job, summary, started, time.monotonic() - begun)


def _options(job: Job, entrant: Entrant) -> dict[str, Any]:
    legal = {"legal": job.entry.legal} if entrant.agent.startswith("inspect/") and job.entry.legal != "bound" else {}
    return {**entrant.options, **legal}


def _told_of(record: EpisodeRecord) -> dict[str, Any]:
    """Return what a sample's metadata says about its episode."""
    own = next(seat for seat in record.seats if seat.own)
    # As in `wsap eval`: a metric of a set of episodes sees nothing in a forfeited one.
    reward, achieved = (0.0, ()) if record.outcome == "forfeited" else (own.reward, own.achievements)
    summary = EpisodeSummary(
        *(record.seed, own.steps, reward, achieved, own.done, own.seat),
        forced=own.forced, repaired=own.repaired,
    )  # fmt: skip
    return {
        "outcome": record.outcome, "reason": record.reason, "metrics": dict(record.metrics), "run": record.run,
        "trajectory": record.trajectory, "episode": asdict(summary),
    }  # fmt: skip


class _Told:
    """Shows what the run records in Inspect's messages and transcript: each action as a call of a tool."""

    def __init__(self, runs: RunReader, job: Job, state: TaskState) -> None:
        self._runs, self._job, self._state, self._last = runs, job, state, -1
        self._written: ChatMessageAssistant | None = None
        """The model's reply to the question at hand, if it has written one."""

    async def catch_up(self) -> None:
        """Show what was recorded since the last time."""
        for event in list(self._runs.events(self._job.run, "call", "step", after=self._last)):
            self._last = event["seq"]
            if event["seat"] not in self._job.own:
                continue
            if event["kind"] == "call":
                self._show_reply(event["body"])
            else:
                await self._show_step(event["body"]["step"], f"step-{event['seq']}")

    def _show_reply(self, body: Mapping[str, Any]) -> None:
        if "reply" not in body:
            return
        asked = [(message["role"], _text(message["content"])) for message in body.get("messages", ())]
        for role, text in asked[:1]:
            if role == "system" and not self._state.messages[1:]:
                self._state.messages[:] = [ChatMessageSystem(content=text)]
        if asked and asked[-1][0] == "user":
            self._state.messages.append(ChatMessageUser(content=asked[-1][1]))
        self._written = ChatMessageAssistant(content=strip_control(str(body["reply"]["text"])))
        self._state.messages.append(self._written)
        self._state.output = ModelOutput.from_content(str(self._state.model), str(self._written.text))

    async def _show_step(self, step: Mapping[str, Any], number: str) -> None:
        action, result = step["action"], step["result"]
        if self._written is None:  # a step of a decision for several
            self._written = ChatMessageAssistant(content="")
            self._state.messages.append(self._written)
        message, self._written = self._written, None
        message.tool_calls = [ToolCall(id=number, function=action["name"], arguments=dict(action["parameters"] or {}))]

        async def execute(**given: JsonValue) -> str:
            return strip_control(str(result["message"]))

        tool = ToolDef(execute, name=action["name"], description="An action of the game.", parameters=ToolParams())
        done = await execute_tools([message], [tool])
        self._state.messages.extend(done.messages)


def _text(content: Any) -> str:
    parts = [content] if isinstance(content, str) else [part.get("text") or "[image]" for part in content]
    return strip_control("\n".join(map(str, parts)))


# --- scores ------------------------------------------------------------------------------------


def _scorers(game: Game) -> list[Scorer]:
    """Return a scorer for each metric of the game, the most important first. Metrics of a set of episodes are metrics
    of the first."""
    single = [each for each in game.metrics if not each.of_set]
    single.sort(key=lambda each: each.name != game.metric.name)
    of_set = [_metric_of_set(each) for each in game.metrics if each.of_set]
    return [_scorer(each, of_set if number == 0 else []) for number, each in enumerate(single)]


def _scorer(own: ScoreMetric, of_set: Sequence[Metric]) -> Scorer:
    @scorer(metrics=[mean(), stderr(), *of_set], name=own.name)  # type: ignore[untyped-decorator]
    def value() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            told = state.metadata.get(_METADATA)
            if told is None:
                return None
            about = {"explanation": told["reason"] or told["outcome"].replace("_", " "), "metadata": told["episode"]}
            found = told["metrics"].get(own.name)
            if told["outcome"] == "forfeited":
                found = own.worst  # a model that does not play does not profit from what the fallback won
            return Score(value=float("nan") if found is None else found, **about)

        return score

    return value()


def _metric_of_set(own: ScoreMetric) -> Metric:
    @metric(name=own.name)  # type: ignore[untyped-decorator]
    def value() -> Metric:
        def compute(scores: list[SampleScore]) -> float:
            told = [each.score.metadata for each in scores if each.score.metadata]
            episodes = [EpisodeSummary(**{**each, "achievements": tuple(each["achievements"])}) for each in told]
            return own.of(episodes) if episodes else float("nan")

        return compute

    return value()


@scorer(metrics=[mean()], name="forfeited")  # type: ignore[untyped-decorator]
def forfeited() -> Scorer:
    """Return a scorer: 1 if the model forfeited the episode, because too many replies could not be used; else 0."""

    async def score(state: TaskState, target: Target) -> Score | None:
        told = state.metadata.get(_METADATA)
        if told is None:
            return None
        return Score(value=int(told["outcome"] == "forfeited"), explanation=told["reason"] or None)

    return score
