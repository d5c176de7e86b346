"""A short run of the simulation behind docs/explanation/intervals.md."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "bench_intervals.py"
    spec = importlib.util.spec_from_file_location("bench_intervals", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_intervals"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("case", "evaluations"),
    [("unbounded", 100), ("clustered", 150), ("bounded", 100), ("paired", 200), ("sequence", 100), ("transfer", 1000),
     ("set", 60), ("ratings", 60), ("detected", 100)],
)  # fmt: skip
def test_intervals_hold_what_they_promise(bench: ModuleType, case: str, evaluations: int) -> None:
    rows = list(bench.CASES[case](evaluations))
    assert rows
    assert [row for row in rows if not row.within(4)] == []
    few = [row for row in rows if case == "unbounded" and row.seeds < 20]
    assert all(row.shown == 0 for row in few), "too few seeds of a metric without bounds get no interval"


def test_power_is_that_of_the_formula(bench: ModuleType) -> None:
    for row in bench.powers(1000):
        assert row.rate == pytest.approx(row.others["formula"], abs=4 * row.error + 0.01)
