"""Runs a transfer measurement."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wsap_core.errors import CutOffError, UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol.lines import plural
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.seams.model import Price
from wsap_core.seams.services import RunReader, runtime_services
from wsap_core.textfile import refuse_pipe, written_to
from wsap_core.untrusted import error_line
from wsap_eval.jobs.runner import NOBODY, Reports
from wsap_eval.memories.kept import kept_memory, numbers_in, stored
from wsap_eval.planning.conditions import Conditions
from wsap_eval.planning.due import NO_BUDGET, NO_LIMITS, Due
from wsap_eval.planning.plan import Game, Job, games_of
from wsap_eval.records import EpisodeRecord
from wsap_eval.results import PLAN, Results, read_results
from wsap_eval.run import Evaluation, opened
from wsap_eval.transfer.plan import LEARNING, Plan, learning_jobs, suite_of, target_jobs
from wsap_eval.transfer.verdict import Verdict, verdicts
from wsap_llm.kit import BudgetLimits, ModelPool

TEST_SEED = "test-seed"
"""The file of the seed from which the test seeds follow, written after learning and readable by its owner only."""


@dataclass(frozen=True)
class Measured:
    """The result of a measurement."""

    plan: Plan
    """With its seeds."""
    verdicts: list[Verdict]
    lessons: Mapping[str, int]
    """Target -> number of lessons from the source that mention it."""
    missing: int = 0
    """Test episodes that are missing or failed."""

    @property
    def failures(self) -> list[str]:
        """A sentence for each control whose verdict is not the expected one."""
        return [
            f"The measurement failed: the verdict on the {kind} control {v.target} is {v.words!r}."
            for v in self.verdicts
            for kind, names, wanted in (
                ("negative", self.plan.negatives, ("none shown", "unknown")),
                ("positive", self.plan.positives, ("helps",)),
            )
            if v.target in names and v.words not in wanted
        ]


def measure(
    plan: Plan,
    folder: Path,
    *,
    seed: int | None = None,
    jobs: int = 1,
    limits: BudgetLimits = NO_BUDGET,
    prices: Mapping[str, Price] | None = None,
    reports: Reports[EpisodeRecord] = NOBODY,
) -> Measured:
    """Play the learning and test episodes that are missing, and return the verdicts.

    The plan is written to `folder` before the first episode, and a hash of the test seeds before the first test.

    Args:
        reports: told what happens while episodes are played.
        seed: the seed of learning and tests. None draws both at random, that of the tests after all lives have learned,
            so that no memory can hold them; a folder that has a measurement keeps its own.

    Raises:
        UsageError: the folder holds another measurement, an agent has no memory, or a memory holds a test seed.
        CutOffError: an episode failed; the same call continues.
        WsapError: a limit was reached, or episodes can't be recorded.
    """
    host = PluginHost.discovered()
    suite = suite_of(plan)
    games = games_of(suite, host)
    evaluation = Evaluation(suite, (plan.entrant,), limits=limits, prices=prices, jobs=jobs)
    of_life = plan.learning * len(plan.learned) + plan.seeds * len(plan.arms) * len(plan.targets)
    with (
        Results(folder, suite) as results,
        opened(evaluation, results, games, host, len(plan.all_lives()) * of_life, reports) as playing,
    ):
        if isinstance(playing.models, ModelPool):
            reports.waiting(playing.models.waited)
        plan = _with_seed(plan, folder, seed)
        runs: RunReader = playing.services.require("runs")
        conditions = Conditions(games, host)

        async def play(asked: Iterable[Job]) -> list[EpisodeRecord]:
            given = list(asked)
            wanted = [replace(job, conditions=conditions.added(job).conditions) for job in given]
            results.heed_changes(wanted, choices="Name another folder with --out.")
            await playing.play(Due(wanted, games, results.episodes, NO_LIMITS))
            found = [results.episodes[job.key] for job in wanted]
            broken = [record for record in found if record.outcome == "failed"]
            if broken:
                raise CutOffError(
                    f"{plural(len(broken), 'episode')} failed; run the same command again to repeat: {broken[0].reason}"
                )
            return found

        async def whole() -> list[EpisodeRecord]:
            nonlocal plan
            memories = await _learn(plan, games, folder, runs, play)
            plan = _with_test_seed(plan, folder, seed)
            _refuse_known_seeds(plan, memories)
            _write_down(plan, folder, memories)
            return await play(target_jobs(plan, games, memories))

        playing.run(whole())
        return _measured(plan, games, results.episodes.values(), runs)


def read_measured(folder: Path) -> Measured:
    """Return the result of a measurement so far, even while it is running, without playing.

    Raises:
        UsageError: the folder has no measurement, or no test of all arms has been played yet.
        WireError: a line is damaged.
    """
    path = folder / PLAN
    try:
        refuse_pipe(path)
        plan = Plan.from_json(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UsageError(f"{str(folder)!r} holds no transfer measurement.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{str(path)!r} can't be read: {error_line(error)}.") from error
    suite, episodes = read_results(folder)
    if not (folder / TEST_SEED).exists():
        learned = sum(record.outcome != "failed" for record in episodes.values())
        raise UsageError(
            f"{str(folder)!r} has no tests yet; {plural(learned, 'learning episode')} played so far. The command that "
            "began the measurement continues it."
        )
    plan = replace(plan, test_seed=int((folder / TEST_SEED).read_text("ascii")))
    games = games_of(suite, PluginHost.discovered())
    with runtime_services(str(folder / "runs.db")) as services:
        return _measured(plan, games, episodes.values(), services.require("runs"))


def _measured(plan: Plan, games: Mapping[str, Game], episodes: Iterable[EpisodeRecord], runs: RunReader) -> Measured:
    records, lives = list(episodes), plan.all_lives()
    seeds = {(life, seed) for life in lives for seed in plan.target_seeds(life)}
    tested = [r for r in records if r.game in plan.targets and (r.repeat, r.seed) in seeds]
    for target in plan.targets:
        played = [
            {(r.repeat, r.seed) for r in tested if (r.game, r.entrant) == (target, arm) and r.outcome != "failed"}
            for arm in plan.arms
        ]
        if not set.intersection(*played):
            raise UsageError(f"No seed of {target} was played in all arms yet; continue the measurement.")
    learned = [r.run for r in records if r.game == LEARNING + plan.source and r.repeat in lives]
    told = (event["body"]["lessons"] for run in learned for event in runs.events(run, "lessons"))
    lessons = [line.lower() for lines in told for line in lines]
    named = {target: _naming((target, games[target].spec.display_title), lessons) for target in plan.targets}
    missing = len(plan.all_lives()) * plan.seeds * len(plan.arms) * len(plan.targets) - sum(
        record.outcome != "failed" for record in tested
    )
    return Measured(plan, verdicts(plan, tested, {t: games[t].metric for t in plan.targets}), named, missing)


async def _learn(
    plan: Plan,
    games: dict[str, Game],
    folder: Path,
    runs: RunReader,
    play: Callable[[Iterable[Job]], Awaitable[object]],
) -> dict[tuple[int, str], str]:
    """Return life and game -> file of the memory after learning."""
    memories: dict[tuple[int, str], str] = {}
    for number in range(plan.learning):
        asked = list(learning_jobs(plan, games, number, memories))
        await play(asked)
        for job in asked:
            memory = kept_memory(runs, job.run)
            if not memory:
                raise UsageError(
                    f"The agent {plan.entrant.name!r} has no memory, so it can't learn; "
                    "give a model one: memory=fulltext."
                )
            memories[job.key.repeat, job.key.game.removeprefix(LEARNING)] = str(stored(folder / "memories", memory))
    return memories


def _with_seed(plan: Plan, folder: Path, seed: int | None) -> Plan:
    """Return the plan with the seed of its folder, else the given one, else a random one, which is written down."""
    path = folder / PLAN
    if path.exists():
        written = json.loads(path.read_text("utf-8"))
        kept = replace(plan, seed=written["seed"])
        if written["sha256"] != kept.digest:
            raise UsageError(f"{str(folder)!r} holds a measurement with another plan; name another folder with --out.")
        if seed not in (None, kept.seed):
            raise UsageError(
                f"{str(folder)!r} holds this measurement with the seed {kept.seed}; leave out --seed to continue it, "
                "or name another folder with --out."
            )
        return kept
    plan = replace(plan, seed=secrets.randbelow(SEED_LIMIT + 1) if seed is None else seed)
    _write_down(plan, folder, {})
    return plan


def _with_test_seed(plan: Plan, folder: Path, seed: int | None) -> Plan:
    """Return the plan with the seed of its tests: the one drawn before, else the given one, else one drawn now."""
    path = folder / TEST_SEED
    if path.exists():
        return replace(plan, test_seed=int(path.read_text("ascii")))
    whole = replace(plan, test_seed=secrets.randbelow(SEED_LIMIT + 1) if seed is None else seed)
    with written_to(path) as file:
        file.write(f"{whole.test_seed}\n")
    path.chmod(0o600)
    return whole


def _refuse_known_seeds(plan: Plan, memories: Mapping[tuple[int, str], str]) -> None:
    """Raise UsageError if what a life remembers has one of its test seeds in it."""
    for (life, game), file in memories.items():
        known = numbers_in(Path(file).read_bytes()) & set(plan.target_seeds(life))
        if known:
            raise UsageError(
                f"The memory of life {life} in {game} holds the number {min(known)}, which is the seed of one of its "
                "tests, so the tests would measure that. Measure again in another folder without --seed: then test "
                "seeds are drawn after learning."
            )


def _write_down(plan: Plan, folder: Path, memories: Mapping[tuple[int, str], str]) -> None:
    body = {"sha256": plan.digest, **plan.to_json()}
    if plan.test_seed is not None:
        body["test_seeds_sha256"] = plan.commitment
        body["memories"] = {f"{life} {game}": Path(file).stem for (life, game), file in memories.items()}
    with written_to(folder / PLAN) as file:
        file.write(json.dumps(body, indent=1) + "\n")


def _naming(names: Iterable[str], lessons: Iterable[str]) -> int:
    """Return how many lower-case lessons contain one of the names."""
    wanted = [name.lower() for name in names]
    return sum(any(name in line for name in wanted) for line in lessons)
