"""Measure the coverage of the intervals of `wsap eval` in simulated evaluations.

    python benchmarks/bench_intervals.py [--case NAME ...] [--evaluations N] [--json]

Each row is a scenario: a distribution of scores, a number of seeds, and repeats of each. For 10,000 random evaluations
(seeded) the intervals are computed by the functions of `wsap eval`, and those are counted whose printed text contains
the true mean. Methods that are not used are shown for comparison.

Goals: `Row.floor` and `Row.ceiling`. The exit status is 1 if a row misses one. The tables are in
docs/explanation/intervals.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from wsap_eval.stats import (
    Interval,
    Match,
    bounds,
    by_life,
    estimate,
    estimates,
    paired,
    paired_set_metric,
    power,
    ratings,
    ratio,
    set_metric,
)
from wsap_eval.stats.paired import FEWEST_UNLIKE, LIKE, NEARLY_CONSTANT, error_rate
from wsap_eval.stats.ratings import _ELO, _strengths
from wsap_eval.tables.digits import interval_of

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
LEVEL = 0.95
CHUNK = 1000
CHECKED = 3
"""Evaluations of each thousand for which the public function must give the same result."""
CHECKED_PAIRS = 5
"""The same for verdicts on differences, whose rules are repeated here."""
COMPARED = 1000
"""Evaluations of each scenario for a method that is not used and takes long; its Monte Carlo error is 1 point."""
BATCH = 10
"""Evaluations that are resampled together."""
CLEAR = 1e-6
"""A value this share of the width inside an interval is inside the printed one, whatever its digits."""


@dataclass(frozen=True)
class Row:
    """A scenario and its counts."""

    case: str
    scenario: str
    seeds: int
    evaluations: int
    shown: float
    """Share of evaluations with an interval."""
    rate: float
    """Share of these whose interval contains the true value; for tests and sequences, the share of false alarms; for
    power, the share of effects detected."""
    others: dict[str, float] = field(default_factory=dict)
    floor: float | None = None
    ceiling: float | None = None

    @property
    def error(self) -> float:
        """Monte Carlo standard error of the rate."""
        return math.sqrt(max(self.rate * (1 - self.rate), 1e-9) / max(1.0, self.shown * self.evaluations))

    @property
    def reached(self) -> bool:
        """Whether the rate is within its bounds."""
        return self.within(0.0)

    def within(self, errors: float) -> bool:
        """Return whether the rate is within its bounds, up to some Monte Carlo errors."""
        slack = errors * self.error
        enough = self.floor is None or self.shown == 0 or self.rate >= self.floor - slack
        return enough and (self.ceiling is None or self.rate <= self.ceiling + slack)


def _gamma(shape: float) -> Draw:
    return lambda rng, size: rng.gamma(shape, 1.0, size)


def _lognormal(sigma: float) -> Draw:
    return lambda rng, size: rng.lognormal(0.0, sigma, size)


def _bernoulli(p: float) -> Draw:
    return lambda rng, size: (rng.random(size) < p).astype(np.float64)


def _beta(a: float, b: float) -> Draw:
    return lambda rng, size: rng.beta(a, b, size)


def _nearly_binary(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.where(rng.random(size) < 0.05, 0.5, _bernoulli(0.3)(rng, size))


def _rare(p: float) -> Draw:
    return lambda rng, size: 10.0 * (rng.random(size) < p) + rng.normal(0, 1, size)


RATES: Array = np.array([99, 97, 95, 92, 88, 80, 70, 60, 45, 40, 30, 22, 15, 10, 6, 4, 2, 1, 0.5, 0.2, 0, 0]) / 100
"""Success rates of 22 achievements, as of a mediocre Crafter player."""


def _progression(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return sum((_bernoulli(rate)(rng, size) for rate in RATES), np.zeros(size)) / len(RATES)


UNBOUNDED: dict[str, tuple[Draw, float, bool]] = {
    "normal": (lambda rng, size: rng.normal(0, 1, size), 0.0, True),
    "uniform": (lambda rng, size: rng.random(size), 0.5, True),
    "t, 3 degrees of freedom": (lambda rng, size: rng.standard_t(3, size), 0.0, True),
    "gamma, skewness 1": (_gamma(4), 4.0, True),
    "lognormal, skewness 1.75": (_lognormal(0.5), math.exp(0.125), True),
    "exponential, skewness 2": (_gamma(1), 1.0, True),
    "gamma, skewness 2.8": (_gamma(0.5), 0.5, True),
    "lognormal, skewness 6.2": (_lognormal(1), math.exp(0.5), False),
    "normal + 10 in 10 % of seeds": (_rare(0.1), 1.0, False),
    "normal + 10 in 3 % of seeds": (_rare(0.03), 0.3, False),
}
"""Name -> draws, true mean, whether the interval must be valid whenever it is shown. Methods and minimum seeds were
chosen with these distributions and other draws."""
UNSEEN: dict[str, tuple[Draw, float, bool]] = {
    "unseen: Poisson, mean 2": (lambda rng, size: rng.poisson(2, size).astype(np.float64), 2.0, True),
    "unseen: chi-squared, skewness 1.6": (lambda rng, size: rng.chisquare(3, size), 3.0, True),
    "unseen: Weibull, skewness 2.8": (lambda rng, size: rng.weibull(0.8, size), math.gamma(2.25), True),
    "unseen: negative gamma, skewness -2.4": (lambda rng, size: -rng.gamma(0.7, 1, size), -0.7, True),
    "unseen: two peaks, 70 to 30": (
        lambda rng, size: np.where(rng.random(size) < 0.3, 3.0, -3.0) + rng.normal(0, 1, size),
        -1.2,
        True,
    ),
    "unseen: t, 5 degrees of freedom": (lambda rng, size: rng.standard_t(5, size), 0.0, True),
    "unseen: geometric, skewness 2": (lambda rng, size: rng.geometric(0.2, size).astype(np.float64), 5.0, True),
}
"""The same for distributions that were not used for that choice."""
BOUNDED: dict[str, tuple[Draw, float]] = {
    "0/1, mean 0.5": (_bernoulli(0.5), 0.5),
    "0/1, mean 0.1": (_bernoulli(0.1), 0.1),
    "0/1, mean 0.02": (_bernoulli(0.02), 0.02),
    "beta(2, 2)": (_beta(2, 2), 0.5),
    "beta(0.5, 0.5)": (_beta(0.5, 0.5), 0.5),
    "beta(1, 9)": (_beta(1, 9), 0.1),
    "beta(40, 60)": (_beta(40, 60), 0.4),
    "0/1 in 95 %, else 0.5": (_nearly_binary, 0.31),
    "share of 22 achievements": (_progression, float(RATES.mean())),
}


def _rng(*words: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def _chunks(evaluations: int) -> Iterator[int]:
    for start in range(0, evaluations, CHUNK):
        yield min(CHUNK, evaluations - start)


def _inside(low: Array, high: Array, truth: float) -> NDArray[np.bool_]:
    return (low <= truth) & (truth <= high)


def _printed(low: Array, high: Array, truth: float | Array) -> NDArray[np.bool_]:
    """Return for each interval whether its printed text contains the true value; False if a bound is not finite."""
    low, high, values = np.broadcast_arrays(low, high, np.asarray(truth, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        margin = CLEAR * (high - low)
        held = np.isfinite(margin) & (low + margin <= values) & (values <= high - margin)
        close = np.isfinite(margin) & ~held
    for at in zip(*np.nonzero(close), strict=True):
        held[at] = _told(Interval(float(low[at]), float(high[at]), LEVEL, ""), float(values[at]))
    return held


def _told(interval: Interval, truth: float) -> bool:
    """Return whether an interval as it is printed contains the true value."""
    low, high = interval_of(interval).split(" to ")
    return float(low) <= truth <= float(high)


def _bca(rows: Array, resamples: int = 1000) -> tuple[Array, Array]:
    """Return the BCa interval of each row's mean, as `scipy.stats.bootstrap(method="BCa")`, for all rows at once."""
    n = rows.shape[-1]
    centred = rows - rows.mean(axis=-1, keepdims=True)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=resamples).T / n
    drawn = np.sort(centred @ weights, axis=-1)
    below = (drawn < 0).mean(axis=-1) / 2 + (drawn <= 0).mean(axis=-1) / 2
    bias = special.ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    squares = np.maximum((centred**2).sum(axis=-1), 1e-100)
    acceleration = (centred**3).sum(axis=-1) / (6 * squares**1.5)
    ends = []
    for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2):
        z = bias + special.ndtri(tail)
        index = np.clip(special.ndtr(bias + z / (1 - acceleration * z)) * (resamples - 1), 0, resamples - 1)
        ends.append(rows.mean(axis=-1) + np.take_along_axis(drawn, np.rint(index).astype(int)[:, None], -1)[:, 0])
    return ends[0], ends[1]


def _unbounded(rows: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return bounds, and whether `estimate` shows them."""
    k = rows.shape[-1]
    if k < estimates.FEWEST:
        nothing = np.full(len(rows), np.nan)
        return nothing, nothing, np.zeros(len(rows), dtype=bool)
    low, high = bounds.wider(rows, LEVEL)
    shown = np.isfinite(high - low) & (np.ceil(estimates.SKEW * bounds.skewness(rows) ** 2) <= k)
    for row, a, b, there in zip(rows[:CHECKED], low, high, shown, strict=False):
        seen = estimate(list(row)).interval
        assert (seen is not None) == there, "the public function decides otherwise"
        assert seen is None or (math.isclose(seen.low, a) and math.isclose(seen.high, b)), "it gives another interval"
    return low, high, shown


def unbounded(evaluations: int) -> Iterator[Row]:
    """Means of a metric without declared bounds: how often an interval is shown, and its coverage when shown."""
    for name, (draw, mean, holds) in (UNBOUNDED | UNSEEN).items():
        for k in (5, 10, 20, 30, 40, 80, 160, 320, 640):
            rng = _rng("unbounded", name, k)
            count = {"shown": 0, "held": 0, "t": 0, "BCa": 0, "compared": 0}
            for size in _chunks(evaluations):
                rows = draw(rng, (size, k))
                low, high, shown = _unbounded(rows)
                count["shown"] += int(shown.sum())
                count["held"] += int(_printed(low[shown], high[shown], mean).sum())
                count["t"] += int(_inside(*bounds.student(rows, LEVEL), mean).sum())
                if count["compared"] < COMPARED:
                    count["compared"] += size
                    count["BCa"] += int(_inside(*_bca(rows), mean).sum())
            others = {
                "shown and wrong": (count["shown"] - count["held"]) / evaluations,
                "t alone": count["t"] / evaluations,
                "BCa alone": count["BCa"] / count["compared"],
            }
            shown_share, rate = count["shown"] / evaluations, count["held"] / max(1, count["shown"])
            yield Row("unbounded", name, k, evaluations, shown_share, rate, others, 0.94 if holds else None)


def clustered(evaluations: int) -> Iterator[Row]:
    """Seeds with repeats and normal values: the naive interval treats episodes as independent."""
    for k in (20, 40, 80):
        for repeats in ("3", "10", "1 to 5"):
            for between, within in ((1.0, 0.5), (0.5, 1.0), (0.0, 1.0)):
                name = f"{repeats} times, SD between {between:g}, within {within:g}"
                rng = _rng("clustered", name, k)
                sizes = np.arange(k) % 5 + 1 if repeats == "1 to 5" else np.full(k, int(repeats))
                held = naive = seen = 0
                for size in _chunks(evaluations):
                    effects = rng.normal(0, between, (size, k))
                    noise = rng.normal(0, within, (size, int(sizes.sum())))
                    values = np.repeat(effects, sizes, axis=-1) + noise
                    means = np.add.reduceat(values, np.cumsum(sizes) - sizes, axis=-1) / sizes
                    low, high, shown = _unbounded(means)
                    public = estimate(list(values[0]), list(np.repeat(np.arange(k), sizes))).interval
                    assert public is None or math.isclose(public.low, low[0]), "clusters are counted otherwise"
                    held += int(_printed(low[shown], high[shown], 0.0).sum())
                    seen += int(shown.sum())
                    naive += int(_inside(*bounds.student(values, LEVEL), 0.0).sum())
                others = {"naive": naive / evaluations}
                yield Row("clustered", name, k, evaluations, seen / evaluations, held / seen, others, 0.94)


def bounded(evaluations: int) -> Iterator[Row]:
    """Means of a metric with declared bounds: exact for every distribution, but wider than necessary."""
    for name, (draw, mean) in BOUNDED.items():
        for k in (5, 10, 20, 50, 100):
            rng = _rng("bounded", name, k)
            held = plain = 0
            width = 0.0
            for size in _chunks(evaluations):
                rows = draw(rng, (size, k))
                low, high = _exact(rows)
                held += int(_printed(low, high, mean).sum())
                width += float((high - low).sum())
                plain += int(_inside(*bounds.student(rows, LEVEL), mean).sum())
            others = {"mean width": width / evaluations, "t alone": plain / evaluations}
            yield Row("bounded", name, k, evaluations, 1.0, held / evaluations, others, 0.95)
    for k in (5, 10, 20, 40):
        rng = _rng("bounded clustered", k)
        held = naive = 0
        for size in _chunks(evaluations):
            rates = rng.beta(0.5, 0.5, (size, k))
            hits = rng.binomial(5, rates)
            held += int(_printed(*_exact(hits / 5), 0.5).sum())
            naive += int(_inside(*bounds.clopper_pearson(hits.sum(axis=-1), 5 * k, LEVEL), 0.5).sum())
        others = {"naive Clopper-Pearson": naive / evaluations}
        yield Row("bounded", "0/1, each seed 5 times", k, evaluations, 1.0, held / evaluations, others, 0.95)


def _exact(rows: Array) -> tuple[Array, Array]:
    """Return the bounds of `estimate` for a metric from 0 to 1."""
    k = rows.shape[-1]
    low, high = bounds.betting(rows, LEVEL)
    binary = ((rows == 0) | (rows == 1)).all(axis=-1)
    share_low, share_high = bounds.clopper_pearson(rows.sum(axis=-1), k, LEVEL)
    low, high = np.where(binary, share_low, low), np.where(binary, share_high, high)
    for row, a, b in zip(rows[:CHECKED], low, high, strict=False):
        seen = estimate(list(row), low=0, high=1).interval
        assert seen is not None, "an exact interval is always shown"
        assert np.allclose([seen.low, seen.high], [a, b]), "it gives another interval"
    return low, high


Pair = Callable[[np.random.Generator, tuple[int, ...]], tuple[Array, Array]]


def _apart(own: Draw, other: Draw) -> Pair:
    return lambda rng, size: (own(rng, size), other(rng, size))


def _around(mean: float, deviation: float) -> Draw:
    return lambda rng, size: rng.normal(mean, deviation, size)


def _on_hard_and_easy_seeds(rng: np.random.Generator, size: tuple[int, ...]) -> tuple[Array, Array]:
    rate = rng.beta(0.5, 0.5, size)
    return (rng.random(size) < rate).astype(np.float64), (rng.random(size) < rate).astype(np.float64)


def _with_seeds(rng: np.random.Generator, size: tuple[int, ...]) -> tuple[Array, Array]:
    seed = rng.normal(0, 1, size)
    return seed + rng.normal(0, 1, size), seed + rng.normal(0, 1, size)


def _mostly_equal(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return math.exp(0.5) + (rng.random(size) < 0.05) * rng.uniform(-1, 1, size)


SKEWED, MEAN = _lognormal(1), math.exp(0.5)
PAIRS: dict[str, tuple[Pair, bool, bool]] = {
    "normal": (_with_seeds, False, True),
    "lognormal, skewness 1.75": (_apart(_lognormal(0.5), _lognormal(0.5)), False, True),
    "exponential": (_apart(_gamma(1), _gamma(1)), False, True),
    "lognormal, skewness 6.2": (_apart(SKEWED, SKEWED), False, True),
    "0/1, seeds from easy to hard": (_on_hard_and_easy_seeds, True, True),
    "0/1, mean 0.5": (_apart(_bernoulli(0.5), _bernoulli(0.5)), True, True),
    "0/1, mean 0.1": (_apart(_bernoulli(0.1), _bernoulli(0.1)), True, True),
    "share of 22 achievements": (_apart(_progression, _progression), True, True),
    "beta(1, 9) against 0.1 ± 0.001": (_apart(_beta(1, 9), _around(0.1, 0.001)), True, True),
    "0/1, mean 0.05, against 0.05 ± 0.001, bounded": (_apart(_bernoulli(0.05), _around(0.05, 0.001)), True, True),
    "0/1, mean 0.05, against 0.05 ± 0.001": (_apart(_bernoulli(0.05), _around(0.05, 0.001)), False, True),
    "exponential against 1 ± 0.001": (_apart(_gamma(1), _around(1, 0.001)), False, True),
    "exponential against 1 ± 0.5": (_apart(_gamma(1), _around(1, 0.5)), False, True),
    "lognormal, skewness 6.2, against 19 of 20 equal": (_apart(SKEWED, _mostly_equal), False, True),
    "lognormal, skewness 6.2, against its mean ± 0.3": (_apart(SKEWED, _around(MEAN, 0.3)), False, True),
    "lognormal, skewness 6.2, against its mean ± 1": (_apart(SKEWED, _around(MEAN, 1)), False, True),
    "normal + 10 in 10 % of seeds, against 1 ± 0.001": (_apart(_rare(0.1), _around(1, 0.001)), False, True),
    "normal + 10 in 10 % of seeds, against 1 ± 1": (_apart(_rare(0.1), _around(1, 1)), False, True),
}
"""Name -> draws of two entrants with equal means, whether the bounds 0 and 1 are declared, whether false alarms must
be as rare as stated."""
SHIFTS = (0.5, 0.75, 1.0)
"""True differences, in standard deviations of a difference, of which the share with a verdict is counted."""
SHIFTED = ("normal", "lognormal, skewness 1.75", "exponential", "lognormal, skewness 6.2")


def differences(evaluations: int) -> Iterator[Row]:
    """False alarms of the paired test of two entrants with equal means, among all evaluations, judged or not; "shown"
    is the share with a verdict. "Against" names the baseline's scores, otherwise both are alike."""
    for name, (draw, declared, holds) in PAIRS.items():
        for k in (5, 10, 20, 30, 40, 100):
            rng = _rng("paired", name, k)
            alarms = students = seen = 0
            for size in _chunks(evaluations):
                own, other = draw(rng, (size, k))
                judged, alarmed = _verdicts(own, other, declared=declared)
                alarms += int(alarmed.sum())
                seen += int(judged.sum())
                rows = own - other
                varied = np.ptp(rows, axis=-1) > 0
                students += int((~_inside(*bounds.student(rows, LEVEL), 0.0) & varied).sum())
            others = {"t alone": students / evaluations}
            shown, rate = seen / evaluations, alarms / evaluations
            yield Row("paired", name, k, evaluations, shown, rate, others, ceiling=0.057 if holds else None)


def detected(evaluations: int) -> Iterator[Row]:
    """Differences found by the paired test of two entrants of like shapes; effects are in standard deviations of a
    difference. The t test without any rule is shown beside it."""
    for name in SHIFTED:
        draw, declared, _ = PAIRS[name]
        spread = float(np.std(np.subtract(*draw(_rng("spread", name), (200_000,)))))
        for effect in SHIFTS:
            for k in (20, 30, 40, 100):
                rng = _rng("detected", name, effect, k)
                found = seen = students = 0
                for size in _chunks(evaluations):
                    own, other = draw(rng, (size, k))
                    own = own + effect * spread
                    judged, called = _verdicts(own, other, declared=declared)
                    better = own.mean(axis=-1) > other.mean(axis=-1)
                    found += int((called & better).sum())
                    seen += int(judged.sum())
                    students += int((bounds.student(own - other, LEVEL)[0] > 0).sum())
                others = {"shown": seen / evaluations, "t alone": students / evaluations}
                yield Row("detected", f"{name}, effect {effect:g}", k, evaluations, 1.0, found / evaluations, others)


def _verdicts(own: Array, other: Array, *, declared: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each evaluation whether `paired` has a verdict, and whether that is "better" or "worse"."""
    rows, k = own - other, own.shape[-1]
    both = np.concatenate([own, other], axis=-1)
    equal = np.abs(rows).max(axis=-1) <= 1e-12 * np.abs(both).max(axis=-1)
    judged, alarmed = _by_shape(rows, own, other)
    if declared:
        within = (both.min(axis=-1) >= 0) & (both.max(axis=-1) <= 1)
        gain, half = (rows + 1) / 2, np.full(len(rows), 0.5)
        bets = bounds.default_bets(k, LEVEL)
        wealth = np.maximum(bounds.log_wealth(gain, half, bets), bounds.log_wealth(1 - gain, half, bets))
        refuted = np.minimum(1.0, 2 * np.exp(-wealth)) <= 1 - LEVEL
        alarmed = np.where(within & ~judged, refuted, alarmed)
        judged |= within
        binary = ((both == 0) | (both == 1)).all(axis=-1)
        more, less = (rows > 0).sum(axis=-1), (rows < 0).sum(axis=-1)
        signs = 2 * stats.binom.cdf(np.minimum(more, less), more + less, 0.5) <= 1 - LEVEL
        alarmed = np.where(binary, signs, alarmed)
    judged, alarmed = judged | equal, alarmed & ~equal
    for i in range(min(CHECKED_PAIRS, len(rows))):
        low, high = (0.0, 1.0) if declared else (None, None)
        one, two = (dict(enumerate(values[i].tolist())) for values in (own, other))
        verdict = paired(one, two, low=low, high=high).verdict
        assert (verdict != "unknown") == judged[i], "the public function decides otherwise"
        assert (verdict in ("better", "worse")) == alarmed[i], "it has another verdict"
    return judged, alarmed


def _by_shape(rows: Array, own: Array, other: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the same by the rules for a metric without bounds."""
    k = rows.shape[-1]
    narrow, wide = np.sort(np.stack([own.std(axis=-1, ddof=1), other.std(axis=-1, ddof=1)]), axis=0)
    shown = (narrow > NEARLY_CONSTANT * wide) & (k >= estimates.FEWEST)
    alike = shown & (rows.std(axis=-1) <= 1e-9 * np.abs(rows).max(axis=-1))
    unlike = narrow < LIKE * wide
    if not shown.any():
        return shown, shown.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        skewed = np.ceil(estimates.SKEW * bounds.skewness(rows) ** 2) > k
    shown &= ~alike & ~skewed & (~unlike | (k >= FEWEST_UNLIKE))
    alarmed = np.zeros(len(rows), dtype=bool)
    for kind, found in ((False, ~unlike), (True, unlike)):
        if (chosen := np.flatnonzero(shown & found)).size:
            low, high = bounds.wider(rows[chosen], 1 - error_rate(k, LEVEL, unlike=kind))
            shown[chosen] = np.isfinite(high - low)
            alarmed[chosen] = ~_inside(low, high, 0.0)
    signs = 2.0 ** (1 - k) <= 1 - LEVEL
    return shown | (alike & signs), (shown & alarmed) | (alike & signs)


def sequences(evaluations: int) -> Iterator[Row]:
    """Confidence sequences: the probability that the interval misses the true value at any look."""
    last = 500
    for name, (draw, mean) in BOUNDED.items():
        rng = _rng("sequence", name)
        missed = plain = 0
        for size in _chunks(evaluations):
            rows = draw(rng, (size, last))
            truth = np.full(size, mean)
            up = bounds.log_wealth(rows, truth, bounds.SEQUENCE_BETS, over_time=True)
            down = bounds.log_wealth(1 - rows, 1 - truth, bounds.SEQUENCE_BETS, over_time=True)
            missed += int((np.maximum(up, down)[:, 1:] >= math.log(2 / (1 - LEVEL))).any(axis=-1).sum())
            plain += _peeking(rows, mean, 2)
        others = {"t at every look": plain / evaluations}
        scenario = f"{name}: exact, every n from 2 to {last}"
        yield Row("sequence", scenario, last, evaluations, 1.0, missed / evaluations, others, ceiling=0.05)
    first, last = estimates.FIRST_LOOK, 1000
    for name, (draw, mean, _) in (UNBOUNDED | UNSEEN).items():
        rng = _rng("sequence", name, first)
        missed = plain = looked = 0
        for size in _chunks(evaluations):
            rows = draw(rng, (size, last))
            n, centre, deviation, skew = _running(rows)
            allowed = (n >= first) & (n >= np.ceil(estimates.SKEW_ANY_LOOK * skew**2))
            half = bounds.asymptotic_sequence(n, (1 + LEVEL) / 2) * deviation
            missed += int((allowed & (np.abs(centre - mean) > half)).any(axis=-1).sum())
            looked += int(allowed.any(axis=-1).sum())
            plain += _peeking(rows, mean, first)
        others = {"t at every look": plain / evaluations}
        scenario = f"{name}: asymptotic, every n from {first} to {last}"
        shown, rate = looked / evaluations, missed / evaluations
        yield Row("sequence", scenario, last, evaluations, shown, rate, others, ceiling=0.05)


def _running(rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return numbers of values, with mean, standard deviation and skewness of the values up to each."""
    n = np.arange(1.0, rows.shape[-1] + 1)
    shift = rows.mean(axis=-1, keepdims=True)
    first, second, third = (((rows - shift) ** power).cumsum(axis=-1) / n for power in (1, 2, 3))
    variance = np.maximum(second - first**2, 1e-12)
    skew = (third - 3 * first * second + 2 * first**3) / variance**1.5
    skew *= np.sqrt(n * np.maximum(n - 1, 1)) / np.maximum(n - 2, 1)
    return n, first + shift, np.sqrt(variance * n / np.maximum(n - 1, 1)), skew


def _peeking(rows: Array, mean: float, first: int) -> int:
    """Return the number of rows in which a t interval misses the mean at some look."""
    n, centre, deviation, _ = _running(rows)
    half = stats.t.ppf((1 + LEVEL) / 2, np.maximum(n - 1, 1)) * deviation / np.sqrt(n)
    return int(((n >= first) & (np.abs(centre - mean) > half + 1e-12)).any(axis=-1).sum())


def sets(evaluations: int) -> Iterator[Row]:
    """Crafter's score, a geometric mean over the rates of 22 achievements. Coverage is not guaranteed."""

    def score(rates: Array) -> Array:
        found: Array = np.exp(np.log1p(100 * rates).mean(axis=-1)) - 1
        return found

    def metric(episodes: Sequence[Array]) -> float:
        return float(score(np.mean(episodes, axis=0)))

    def percentiles(drawn: Array) -> tuple[Array, Array]:
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=-1)
        return low, high

    truth = float(score(RATES))
    for k in (20, 40, 80, 160):
        picked = np.random.default_rng(0).integers(k, size=(1000, k))
        weights = np.array([np.bincount(row, minlength=k) for row in picked], dtype=np.float32)
        logs = np.log1p(100 * np.arange(k + 1) / k)
        rng = _rng("set", k)
        held = resampled = alone = 0
        for start in range(0, evaluations, BATCH):
            size = min(BATCH, evaluations - start)
            drawn = (rng.random((size, 2, k, len(RATES))) < RATES).astype(np.float32)
            one = drawn[:, 0].astype(np.float64)
            left = score((one.sum(axis=1, keepdims=True) - one) / (k - 1))
            centre = k * score(one.mean(axis=1)) - (k - 1) * left.mean(axis=-1)
            half = stats.t.ppf((1 + LEVEL) / 2, k - 1) * left.std(axis=-1) * math.sqrt(k - 1)
            alone += int(_printed(centre - half, centre + half, truth).sum())
            hits = np.matmul(weights, drawn)  # counts, shape (size, 2, resamples, achievements)
            scores = np.exp(logs[hits.astype(np.intp)].mean(axis=-1)) - 1
            low, high = percentiles(scores[:, 0] - scores[:, 1])
            held += int(_printed(low, high, 0.0).sum())
            resampled += int(_inside(*percentiles(scores[:, 0]), truth).sum())
            for i in range(min(size, CHECKED - start)):
                mine, other = ({seed: [values[seed]] for seed in range(k)} for values in drawn[i].astype(np.float64))
                seen, difference = set_metric(mine, metric).interval, paired_set_metric(mine, other, metric).interval
                assert (seen is not None) == (k >= 40), "an interval is shown from other numbers of seeds"
                assert seen is None or math.isclose(seen.low, centre[i] - half[i]), "it gives another interval"
                assert difference is not None, "20 seeds are enough"
                assert math.isclose(difference.low, low[i], abs_tol=1e-9), "it gives another interval"
        others = {"bootstrap in its place": resampled / evaluations}
        yield Row("set", "score, jackknife", k, evaluations, float(k >= 40), alone / evaluations, others)
        yield Row("set", "difference of two alike, bootstrap", k, evaluations, 1.0, held / evaluations)


def ratios(evaluations: int) -> Iterator[Row]:
    """Fieller's interval of a ratio of means: undefined if the denominator may be 0."""
    for k in (5, 10, 20):
        for above, below in ((0.5, 1.0), (0.5, 0.3)):
            rng = _rng("ratio", above, below, k)
            held = seen = 0
            for _ in range(evaluations):
                shared = rng.normal(0, 0.5, k)
                one, two = (mean + shared + rng.normal(0, 0.5, k) for mean in (above, below))
                found = ratio(list(one), list(two))
                seen += found.interval is not None
                held += found.interval is not None and _told(found.interval, above / below)
            name = f"means {above:g} and {below:g}, SD 0.7, correlation 0.5"
            others = {"shown and wrong": (seen - held) / evaluations}
            yield Row("ratio", name, k, evaluations, seen / evaluations, held / max(1, seen), others)


def strengths(evaluations: int) -> Iterator[Row]:
    """Bradley-Terry ratings with a bootstrap of 200 resamples over seeds: four entrants, a round of all pairs on each
    seed, four intervals of each evaluation."""
    true, resamples = np.array([1.0, 0.3, -0.3, -1.0]), 200
    first, second = np.tril_indices(len(true), -1)
    chances = 1 / (1 + np.exp(true[second] - true[first]))
    group, tails = np.zeros(len(true)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    for k in (20, 50, 100):
        rng = _rng("ratings", k)
        weights = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), size=resamples).astype(np.float64)
        held = 0
        for start in range(0, evaluations, BATCH):
            size = min(BATCH, evaluations - start)
            won = (rng.random((size, k, len(first))) < chances).astype(np.float64)
            wins = np.zeros((size, resamples, len(true), len(true)))
            wins[..., first, second] = np.matmul(weights, won)
            wins[..., second, first] = k - wins[..., first, second]
            drawn = _strengths(wins.reshape(-1, len(true), len(true)), group).reshape(size, resamples, -1) * _ELO
            low, high = np.quantile(drawn, tails, axis=1)
            held += int(_printed(low, high, true * _ELO).sum())
            for i in range(min(size, CHECKED - start)):
                matches = [
                    Match(seed, (str(a), str(b)), (score, 1 - score))
                    for seed, scores in enumerate(won[i].tolist())
                    for a, b, score in zip(first.tolist(), second.tolist(), scores, strict=True)
                ]
                for rating in ratings(matches, resamples=resamples):
                    assert rating.interval is not None, "20 seeds are enough"
                    ends = low[i, int(rating.entrant)], high[i, int(rating.entrant)]
                    assert np.allclose([rating.interval.low, rating.interval.high], ends), "it gives another interval"
        scenario, count = "four entrants, strengths 1, 0.3, -0.3, -1", 4 * evaluations
        yield Row("ratings", scenario, k, count, 1.0, held / count)


WITHIN, BETWEEN, HARDNESS = 0.5, 0.1, 0.15


def _lives(rng: np.random.Generator, evaluations: int, lives: int, seeds: int, effect: float, kind: str) -> Array:
    """Return differences of two arms, shape (evaluations, lives, seeds)."""
    shape = (evaluations, lives, seeds)
    life = rng.normal(effect, BETWEEN, (evaluations, lives, 1))
    if kind == "normal":
        return life + rng.normal(0, WITHIN, shape)
    if kind in ("seed × arm, own seeds", "seed × arm, shared seeds"):
        part = WITHIN * math.sqrt(0.5)
        arms = rng.normal(0, part, shape if kind.endswith("own seeds") else (evaluations, 1, seeds))
        return life + arms + rng.normal(0, part, shape)
    hardness = rng.normal(0, HARDNESS, shape)
    first, second = (0.5 + hardness + rng.normal(0, 0.1, shape) for _ in range(2))
    return (rng.random(shape) < second + life).astype(np.float64) - (rng.random(shape) < first)


def transfer(evaluations: int) -> Iterator[Row]:
    """Transfer between games: SD 0.5 of a paired difference on a seed, and 0.1 between lives."""
    kinds = ("normal", "0/1", "seed × arm, own seeds", "seed × arm, shared seeds")
    for kind in kinds:
        for lives, seeds in ((1, 200), (5, 40), (10, 20), (20, 10), (20, 20), (40, 10)):
            rng = _rng("transfer", kind, lives, seeds)
            alarms = naive = 0
            for size in _chunks(evaluations):
                seen = _lives(rng, size, lives, seeds, 0.0, kind)
                naive += int((~_inside(*bounds.student(seen.reshape(size, -1), LEVEL), 0.0)).sum())
                if lives > 1:
                    missed = ~_inside(*bounds.student(seen.mean(axis=-1), LEVEL), 0.0)
                    alarms += int(missed.sum())
                    verdict = by_life(dict(enumerate(seen[0]))).effect.verdict
                    assert (verdict != "tied") == missed[0], "the public function decides otherwise"
            ceiling = None if kind.endswith("shared seeds") else 0.057
            scenario = f"{kind}: {lives} × {seeds}, no effect"
            others = {"naive": naive / evaluations}
            shown = float(lives > 1)
            yield Row("transfer", scenario, lives, evaluations, shown, alarms / evaluations, others, None, ceiling)


NOTED = {(10, 20, 0.1): 0.48, (20, 20, 0.1): 0.81, (40, 10, 0.1): 0.92, (40, 40, 0.05): 0.68}
"""(lives, seeds, effect) -> the expected power, from which the default of 20 × 20 was chosen."""


def powers(evaluations: int) -> Iterator[Row]:
    """Effects detected by the test over life means, with the formula's power and the power expected for the default."""
    for kind in ("normal", "0/1", "seed × arm, own seeds"):
        for (lives, seeds, effect), noted in NOTED.items():
            rng = _rng("power", kind, lives, seeds, effect)
            found = 0
            for size in _chunks(evaluations):
                seen = _lives(rng, size, lives, seeds, effect, kind).mean(axis=-1)
                found += int((bounds.student(seen, LEVEL)[0] > 0).sum())
            spread = math.sqrt(0.5 - 2 * HARDNESS**2) if kind == "0/1" else WITHIN
            others = {"formula": power(effect, within_sd=spread, between_sd=BETWEEN, lives=lives, seeds=seeds)}
            if kind != "0/1":
                others["planned with"] = noted
            scenario = f"{kind}: {lives} × {seeds}, effect {effect:g}"
            yield Row("power", scenario, lives, evaluations, 1.0, found / evaluations, others)


CASES: dict[str, Callable[[int], Iterator[Row]]] = {
    "unbounded": unbounded,
    "clustered": clustered,
    "bounded": bounded,
    "paired": differences,
    "detected": detected,
    "sequence": sequences,
    "set": sets,
    "ratio": ratios,
    "ratings": strengths,
    "transfer": transfer,
    "power": powers,
}
RATE = {
    "paired": "false alarms",
    "sequence": "ever wrong",
    "transfer": "false alarms",
    "power": "found",
    "detected": "found",
}


def table(rows: Sequence[Row]) -> str:
    """Return the rows of one case as a Markdown table, with a column per number of seeds or a line per row."""
    case = rows[0].case
    counts = sorted({row.seeds for row in rows})
    by_cell = {(row.scenario, row.seeds): row for row in rows}
    wide = len(by_cell) < len(rows) or len({row.scenario for row in rows}) < len(rows)
    names = list(dict.fromkeys(name for row in rows for name in row.others))
    lines: list[list[str]] = []
    if wide:
        lines += [["scenario", "", *(f"{count} seeds" for count in counts)], ["---", "---", *["--:"] * len(counts)]]
        for scenario in dict.fromkeys(row.scenario for row in rows):
            cells = [by_cell.get((scenario, count)) for count in counts]
            figures = {RATE.get(case, "holds"): [_rate(row) for row in cells]}
            if any(row and row.shown < 0.995 for row in cells):
                figures["shown"] = [f"{100 * row.shown:.0f}" if row else "" for row in cells]
            for name in names:
                if any(row and name in row.others for row in cells):
                    figures[name] = [_figure(row, name) for row in cells]
            lines += [[scenario if i == 0 else "", name, *told] for i, (name, told) in enumerate(figures.items())]
    else:
        lines += [["scenario", RATE.get(case, "holds"), *names], ["---", *["--:"] * (1 + len(names))]]
        lines += [[row.scenario, _rate(row), *(_figure(row, name) for name in names)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _rate(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{100 * row.rate:.1f} ± {100 * row.error:.1f}" if row.shown else "none"


def _figure(row: Row | None, name: str) -> str:
    if row is None or name not in row.others:
        return ""
    return f"{row.others[name]:.3f}" if name == "mean width" else f"{100 * row.others[name]:.1f}"


def main() -> int:
    """Simulate and print; 1 if a row misses its goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="only this case; may be repeated")
    parser.add_argument("--evaluations", type=int, default=10_000, help="simulated evaluations of each scenario")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    missed, found = 0, []
    for case in options.case or CASES:
        rows = list(CASES[case](options.evaluations))
        missed += sum(not row.reached for row in rows)
        if options.json:
            found += [asdict(row) | {"error": row.error, "reached": row.reached} for row in rows]
        else:
            told = " ".join((CASES[case].__doc__ or "").split())
            print(f"\n### {case}\n\n{told} In percent.\n\n{table(rows)}", flush=True)
            for row in rows:
                if not row.reached:
                    print(f"MISSED: {row}")
    if options.json:
        print(json.dumps(found, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
