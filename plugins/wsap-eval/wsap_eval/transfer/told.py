"""A measurement as text: the same for the terminal, the page and other formats."""

from __future__ import annotations

from collections.abc import Iterator

from wsap_eval.tables.digits import estimate_of, interval_of, number, p_of
from wsap_eval.transfer.run import Measured
from wsap_eval.transfer.verdict import Verdict

COLUMNS = ("difference", "mean", "95 % interval over lives", "(over episodes: too narrow)")


def title_of(verdict: Verdict, measured: Measured) -> str:
    """Return the heading of the result for a target."""
    plan = measured.plan
    return (
        f"From {_short(plan.source)} to {_short(verdict.target)}: {verdict.metric}; {plan.lives} lives of {plan.seeds} "
        "seeds"
    )


def rows_of(verdict: Verdict) -> list[list[str]]:
    """Return the cells of each difference, one for each of `COLUMNS`."""
    rows = []
    for compared in verdict.comparisons:
        effect, naive = compared.lives.effect, compared.lives.naive
        spans = [interval_of(found.interval) for found in (effect, naive)]
        mean = number(effect.difference, effect.interval, sign=True)
        rows.append([f"{compared.arm} - {compared.other}", mean, *spans])
    return rows


def lines_of(verdict: Verdict, measured: Measured) -> Iterator[str]:
    """Yield the sentences on a target, the verdict among the last."""
    means = ", ".join(f"{arm} {number(mean)}" for arm, mean in verdict.means.items())
    yield f"Means: {means}."
    if any(verdict.forfeited.values()):
        told = ", ".join(f"{arm} {count}" for arm, count in verdict.forfeited.items())
        as_what = "whose seeds count in no arm, since the metric declares no worst value"
        if verdict.worst is not None:
            as_what = f"counted as {number(verdict.worst)}, the worst score"
        yield f"Forfeited episodes, {as_what}: {told}."
    share = verdict.share
    if share.value is None:
        yield f"Share of the gain from practice: {share.why_undefined}."
    else:
        yield f"Share of the gain from practice: {estimate_of(share.value, share.interval)}, by Fieller."
    head = verdict.headline
    if head.effect.interval is None:
        alone = head.effect.seeds < 2
        yield "An interval needs at least two lives." if alone else "All lives differ by the same amount."
    if head.within_sd is not None and head.between_sd is not None:
        needed = "" if verdict.lives_needed is None else (
            f" Detecting an effect of a tenth of the placebo's mean takes {verdict.lives_needed} such lives."
        )  # fmt: skip
        between, within = number(head.between_sd), number(head.within_sd)
        yield f"Standard deviation: {between} between lives, {within} within a life.{needed}"
    if count := measured.lessons[verdict.target]:
        yield f"Lessons from {_short(measured.plan.source)} that mention {_short(verdict.target)}: {count}."
    adjusted = "" if verdict.p_adjusted is None else f" ({p_of(verdict.p_adjusted)}, over all targets)"
    yield f"Verdict: {verdict.words}{adjusted}."
    if verdict.caveat:
        yield verdict.caveat


def origin_of(measured: Measured) -> str:
    """Return a sentence on the plan and its seeds."""
    plan = measured.plan
    return f"Plan {plan.digest[:12]}, written before the first episode; seed {plan.seed}, test seed {plan.test_seed}."


def _short(name: str) -> str:
    return name.rpartition("/")[2]
