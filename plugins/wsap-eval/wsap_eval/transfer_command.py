"""`wsap eval transfer`, also typed as `wsap eval --transfer A --to C`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json, print_table
from wsap_core.cli.params import SEED, STEPS, json_option, refuse_given

if TYPE_CHECKING:
    from wsap_eval.transfer.run import Measured
    from wsap_eval.transfer.verdict import Verdict

PILOT = (5, 10)


@click.command(
    cls=GroupedCommand,
    sections={
        "Measurement": ("source", "targets", "negatives", "positives", "entrant"),
        "Episodes": ("lives", "seeds", "learning", "steps", "arms", "seed", "pilot", "limits", "prices"),
        "Output": ("out", "jobs"),
    },
    examples=(
        "wsap eval transfer --from minigrid --to crafter --entrant ollama/qwen3:8b,memory=fulltext --pilot",
        "wsap eval transfer --from minigrid --to crafter --negative matrix --entrant ollama/qwen3:8b,memory=fulltext",
    ),
)
@click.option("--from", "source", required=True, metavar="GAME", help="The source: the game in which a life learns.")
@click.option("--to", "targets", required=True, multiple=True, metavar="GAME",
              help="A target: a game in which it is tested; may be repeated.")  # fmt: skip
@click.option("--negative", "negatives", multiple=True, metavar="GAME",
              help="Negative control: a target in which learning can't help.")  # fmt: skip
@click.option("--positive", "positives", multiple=True, metavar="GAME",
              help="Positive control: a target in which learning must help.")  # fmt: skip
@click.option("--entrant", required=True, metavar="NAME[,OPTION=VALUE...]", help="An agent with a memory.")
@click.option("--lives", type=STEPS, default=20, show_default=True, help="Number of independent lives.")
@click.option("--seeds", type=STEPS, default=20, show_default=True, help="Target seeds of each life.")
@click.option("--learning", type=STEPS, default=5, show_default=True, help="Learning episodes of each life.")
@click.option("--steps", type=STEPS, help="Maximum decisions of an episode.")
@click.option("--arms", default="blank,placebo,source,practised,raw", show_default=True, metavar="NAMES",
              help="The arms to compare, separated by commas; source and placebo are required.")  # fmt: skip
@click.option("--seed", type=SEED, help="Seed of learning and tests. By default both are random and printed, and "
              "the tests' is drawn after learning, so that no agent can know it.")  # fmt: skip
@click.option("--pilot", is_flag=True, help="Play 5 lives of 10 seeds, and estimate how many lives are needed.")
@click.option("--limit", "limits", multiple=True, metavar="KIND=N", help="Stop before calls, tokens or cost exceed N.")
@click.option("--price", "prices", multiple=True, metavar="ADDRESS=IN/OUT", help="A model's price, as for wsap eval.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results.")
@click.option("--jobs", type=STEPS, default=1, show_default=True, help="Processes, for entrants without models.")
@json_option
def transfer(
    source: str,
    targets: tuple[str, ...],
    negatives: tuple[str, ...],
    positives: tuple[str, ...],
    entrant: str,
    *,
    lives: int,
    seeds: int,
    learning: int,
    steps: int | None,
    arms: str,
    seed: int | None,
    pilot: bool,
    limits: tuple[str, ...],
    prices: tuple[str, ...],
    out: Path | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Measure whether learning in one game helps an agent in another.

    Each life learns in the source, then plays its own target seeds with a frozen memory in several arms: with what it
    learned (source), with as many scrambled items (placebo), and so on. The score is source - placebo, with an interval
    over lives. The same command resumes a stopped measurement.
    """
    # Deferred for weight: scipy, the runtime.
    from wsap_core.errors import UsageError
    from wsap_eval.live import Live
    from wsap_eval.spending import limits_of, prices_of
    from wsap_eval.suite import read_entrant
    from wsap_eval.transfer.plan import ARMS, Plan
    from wsap_eval.transfer.run import measure

    if pilot:
        refuse_given("with --pilot, which plays 5 lives of 10 seeds", "lives", "seeds")
        lives, seeds = PILOT
    named = [name.strip() for name in arms.split(",")]
    chosen = tuple(arm for arm in ARMS if arm in named)
    if len(chosen) != len(named) or not {"source", "placebo"} <= set(chosen):
        raise UsageError(f"--arms takes source, placebo and any others of {', '.join(ARMS)}, not {arms!r}.")
    games = tuple(dict.fromkeys((*targets, *negatives, *positives)))
    plan = Plan(source, games, read_entrant(entrant), lives, seeds, learning, steps, chosen, pilot=pilot)
    folder = out or Path("wsap-eval") / f"transfer-{'pilot-' * pilot}{plan.design[:8]}"
    with Live(folder, quiet=as_json) as live:
        measured = measure(
            plan, folder, seed=seed, jobs=jobs, limits=limits_of(limits), prices=prices_of(prices), progress=live,
            stopping=live.stopping,
        )  # fmt: skip
    plan = measured.plan
    checks = [*((name, False) for name in negatives), *((name, True) for name in positives)]
    failures = [line for name, helps in checks if (line := _check(measured, name, helps=helps))]
    if as_json:
        rows = [
            {**asdict(v), "verdict": v.words, "caveat": v.caveat, "lessons_that_name_it": measured.lessons[v.target]}
            for v in measured.verdicts
        ]
        print_json({
            "plan": plan.digest, "seed": plan.seed, "test_seed": plan.test_seed, "folder": str(folder), "targets": rows,
            "instrument": failures or "ok",
        })  # fmt: skip
        return
    for verdict in measured.verdicts:
        _tell(verdict, measured)
    for line in failures:
        click.echo(line)
    click.echo(
        f"Plan {plan.digest[:12]}, written before the first episode; seed {plan.seed}, test seed {plan.test_seed}; "
        f"results: {folder}",
        err=True,
    )


def _tell(verdict: Verdict, measured: Measured) -> None:
    from wsap_eval.digits import estimate_of, interval_of, number, p_of

    plan = measured.plan
    source, target = (name.rpartition("/")[2] for name in (plan.source, verdict.target))
    click.echo(f"\nFrom {source} to {target}: {verdict.metric}; {plan.lives} lives of {plan.seeds} seeds")
    rows = []
    for compared in verdict.comparisons:
        effect, naive = compared.lives.effect, compared.lives.naive
        spans = [interval_of(found.interval) for found in (effect, naive)]
        mean = number(effect.difference, effect.interval, sign=True)
        rows.append([f"{compared.arm} - {compared.other}", mean, *spans])
    print_table(["difference", "mean", "95 % interval over lives", "(over episodes: too narrow)"], rows)
    means = ", ".join(f"{arm} {number(mean)}" for arm, mean in verdict.means.items())
    click.echo(f"Means: {means}.")
    if any(verdict.forfeited.values()):
        told = ", ".join(f"{arm} {count}" for arm, count in verdict.forfeited.items())
        as_what = "whose seeds count in no arm, since the metric declares no worst value"
        if verdict.worst is not None:
            as_what = f"counted as {number(verdict.worst)}, the worst score"
        click.echo(f"Forfeited episodes, {as_what}: {told}.")
    share = verdict.share
    if share.value is None:
        click.echo(f"Share of the gain from practice: {share.why_undefined}.")
    else:
        click.echo(f"Share of the gain from practice: {estimate_of(share.value, share.interval)}, by Fieller.")
    head = verdict.headline
    if head.effect.interval is None:
        alone = head.effect.seeds < 2
        click.echo("An interval needs at least two lives." if alone else "All lives differ by the same amount.")
    if head.within_sd is not None and head.between_sd is not None:
        needed = "" if verdict.lives_needed is None else (
            f" Detecting an effect of a tenth of the placebo's mean takes {verdict.lives_needed} such lives."
        )  # fmt: skip
        between, within = number(head.between_sd), number(head.within_sd)
        click.echo(f"Standard deviation: {between} between lives, {within} within a life.{needed}")
    if count := measured.lessons[verdict.target]:
        click.echo(f"Lessons from {source} that mention {target}: {count}.")
    adjusted = "" if verdict.p_adjusted is None else f" ({p_of(verdict.p_adjusted)}, over all targets)"
    click.echo(f"Verdict: {verdict.words}{adjusted}.")
    if verdict.caveat:
        click.echo(verdict.caveat)


def _check(measured: Measured, name: str, *, helps: bool) -> str:
    """Return a sentence if a control's verdict is not the expected one, else an empty text."""
    verdict = next(v for v in measured.verdicts if v.target == name)
    if verdict.words in (("helps",) if helps else ("none shown", "unknown")):
        return ""
    wanted = "positive" if helps else "negative"
    return f"The measurement failed: the verdict on the {wanted} control {name} is {verdict.words!r}."
