"""Verdicts of a transfer measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsap_core.specs import ScoreMetric
from wsap_eval.records import EpisodeRecord, value_of, worst_of
from wsap_eval.stats import Lives, Ratio, by_life, directed, holm, lives_needed, ratio
from wsap_eval.transfer.plan import Plan

HEADLINE = ("source", "placebo")
_WORDS = {"better": "helps", "worse": "harms", "tied": "none shown", "unknown": "unknown"}


@dataclass(frozen=True)
class Comparison:
    """The difference of two arms over lives."""

    arm: str
    other: str
    lives: Lives


@dataclass(frozen=True)
class Verdict:
    """The result for one target."""

    target: str
    metric: str
    means: Mapping[str, float]
    """Arm -> mean over lives of the means over their seeds."""
    forfeited: Mapping[str, int]
    """Arm -> forfeited episodes, which count as the worst: a memory can spoil an agent's replies."""
    worst: float | None
    """The value of a forfeited episode; None if the metric declares none, so that all arms go without its seed."""
    comparisons: Sequence[Comparison]
    """The headline, source - placebo, is first."""
    p_adjusted: float | None
    """Of the headline, adjusted for all targets (Holm)."""
    share: Ratio
    """Gain from the source relative to the gain from practice in the target."""
    lives_needed: int | None
    """Lives of as many seeds needed to detect an effect of a tenth of the placebo's mean with power 0.8."""

    @property
    def headline(self) -> Lives:
        """Source - placebo."""
        return self.comparisons[0].lives

    @property
    def words(self) -> str:
        """The verdict: "helps", "harms", "none shown", or "unknown"."""
        effect = self.headline.effect
        if effect.verdict in ("better", "worse") and (self.p_adjusted or 0.0) > 0.05:
            return "unknown"
        return _WORDS[effect.verdict]

    @property
    def caveat(self) -> str:
        """A sentence if the placebo alone changes play, so that it is no measure of having learned nothing; else ""."""
        blank = next((c.lives.effect for c in self.comparisons if (c.arm, c.other) == ("blank", "placebo")), None)
        if blank is None or blank.verdict not in ("better", "worse"):
            return ""
        worse = "worse" if blank.verdict == "better" else "better"
        return (
            f"Beware: with the placebo alone the agent plays {worse} than without a memory, so source - placebo is not "
            "only what was learned; look at the difference to blank, too."
        )


def verdicts(plan: Plan, records: Iterable[EpisodeRecord], metrics: Mapping[str, ScoreMetric]) -> list[Verdict]:
    """Return the verdict on each target.

    A life's value in an arm is the mean over the seeds on which no arm failed. Records of other episodes are ignored.
    Raises UsageError if a target has no life with a seed that all arms played.
    """
    own = [record for record in records if record.game in plan.targets and record.repeat in plan.all_lives()]
    found = [_verdict(plan, target, metrics[target], [r for r in own if r.game == target]) for target in plan.targets]
    tested = [v for v in found if v.headline.effect.p_value is not None]
    adjusted = holm([v.headline.effect.p_value or 0.0 for v in tested])
    by_target = {v.target: p for v, p in zip(tested, adjusted, strict=True)}
    return [replace(v, p_adjusted=by_target.get(v.target)) for v in found]


def _verdict(plan: Plan, target: str, metric: ScoreMetric, records: Sequence[EpisodeRecord]) -> Verdict:
    worst = worst_of(metric)
    by_arm: dict[str, dict[tuple[int, int], float]] = {arm: {} for arm in plan.arms}
    for record in records:
        if (value := value_of(record, worst)) is not None:
            by_arm[record.entrant][record.repeat, record.seed] = value
    common = sorted(set.intersection(*(set(played) for played in by_arm.values())))
    pairs = [HEADLINE, *((arm, "placebo") for arm in plan.arms if arm not in HEADLINE)]
    compared = [
        Comparison(a, b, _directed(by_life(_differences(by_arm, a, b, common)), metric))
        for a, b in pairs
        if {a, b} <= by_arm.keys()
    ]
    lives = {arm: _by_life(played, common) for arm, played in by_arm.items()}
    means = {arm: float(np.mean([np.mean(values) for values in own.values()])) for arm, own in lives.items()}
    share = Ratio(None, None, "undefined: there is no practised arm")
    if "practised" in by_arm:
        over = [[float(np.mean(d)) for d in _differences(by_arm, arm, "placebo", common).values()]
                for arm in ("source", "practised")]  # fmt: skip
        share = ratio(*over)
    head = compared[0].lives
    needed = None
    if head.within_sd and head.between_sd is not None and means["placebo"]:
        wanted = abs(means["placebo"]) / 10
        needed = lives_needed(wanted, within_sd=head.within_sd, between_sd=head.between_sd, seeds=plan.seeds)
    lost = Counter(record.entrant for record in records if record.outcome == "forfeited")
    forfeited = {str(arm): lost[arm] for arm in plan.arms}
    return Verdict(target, metric.name, means, forfeited, worst, compared, None, share, needed)


def _directed(lives: Lives, metric: ScoreMetric) -> Lives:
    return replace(lives, effect=directed(lives.effect, metric.better), naive=directed(lives.naive, metric.better))


def _by_life(played: Mapping[tuple[int, int], float], common: Sequence[tuple[int, int]]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for life, seed in common:
        found.setdefault(life, []).append(played[life, seed])
    return found


def _differences(
    by_arm: Mapping[str, Mapping[tuple[int, int], float]], arm: str, other: str, common: Sequence[tuple[int, int]]
) -> dict[int, list[float]]:
    return _by_life({key: by_arm[arm][key] - by_arm[other][key] for key in common}, common)
