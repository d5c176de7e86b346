"""The page of published results shows what `benchmarks/bench_papers.py` recorded, and the originals are right."""

from __future__ import annotations

import importlib
import math
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tools_kit import ROOT

PAGE = (ROOT / "docs" / "explanation" / "published-tables.md").read_text("utf-8")


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def published(benchmarks: None) -> ModuleType:
    return importlib.import_module("published")


@pytest.fixture
def originals(benchmarks: None) -> ModuleType:
    return importlib.import_module("originals")


def test_the_page_shows_the_record_and_all_of_it(published: ModuleType) -> None:
    record = published.recorded()
    assert record
    assert published.shown(PAGE) == {name: published.lines(case) for name, case in record.items()}, (
        "run: python benchmarks/bench_papers.py --write"
    )


def test_every_measured_figure_of_the_page_stands_in_a_recorded_table(published: ModuleType) -> None:
    prose = published.BLOCK.sub("", PAGE)
    assert [line for line in prose.splitlines() if line.startswith("|")] == []
    prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
    prose = re.sub(r"\(https?:[^)]*\)|arXiv \d{4}\.\d{4,5}|version \d+\.\d+", "", prose)
    assert re.findall(r"\d+\.\d+|\d+ ?%|± ?\d+", prose) == []


def test_a_record_is_written_to_its_page_and_read_again(tmp_path: Path, published: ModuleType) -> None:
    page, record = tmp_path / "page.md", tmp_path / "page.json"
    page.write_text("# P\n\n<!-- figures: one -->\n<!-- end -->\n\n<!-- figures: two -->\nkept\n<!-- end -->\nEnd.\n")
    first = published.Case("run", (published.Figure("a, 20 seeds", "1.5", "1.4 to 1.6", "1.51", "1.4 to 1.7", "1.6"),))
    published.update({"one": first}, page, record)
    assert published.recorded(record) == {"one": first}
    assert "\n| a, 20 seeds | 1.5 | 1.4 to 1.6 | 1.51 | 1.4 to 1.7 | 1.6 |\n" in page.read_text()
    second = published.Case("run", (published.Figure("b", "2"),), "Of a busy day.")
    published.update({"two": second}, page, record)
    assert published.recorded(record) == {"one": first, "two": second}
    assert published.shown(page.read_text()) == {"one": published.lines(first), "two": published.lines(second)}
    assert "kept" not in page.read_text()
    assert page.read_text().endswith("<!-- end -->\nEnd.\n")


def test_a_figure_changed_by_hand_is_seen(published: ModuleType) -> None:
    name, case = next(iter(published.recorded().items()))
    changed = PAGE.replace(published.lines(case), published.lines(case).replace("1", "7"), 1)
    assert changed != PAGE
    assert published.shown(changed)[name] != published.lines(case)


def test_the_original_of_the_prisoners_dilemma_has_the_payoffs_of_the_rules(originals: ModuleType) -> None:
    found = originals.axelrod_by_hand()
    assert len(found) == 16
    assert found["tit-for-tat", "defector"] == pytest.approx((0 + 199 * 1) / 200)
    assert found["defector", "grudger"] == pytest.approx((5 + 199 * 1) / 200)
    assert found["cooperator", "defector"] == 0
    assert found["defector", "cooperator"] == 5
    assert found["grudger", "tit-for-tat"] == 3


def test_the_chance_of_the_mafia_is_that_of_counted_games(originals: ModuleType) -> None:
    assert originals.mafia_chance(3, 1) == pytest.approx(2 / 3)  # the town lynches the mafioso, or has lost
    assert originals.mafia_chance(5, 1) == pytest.approx(8 / 15)
    draw, games = random.Random(5), 20_000
    won = sum(_idle_game(draw, 7, 2) for _ in range(games)) / games
    chance = originals.mafia_chance(7, 2, idle=True)
    assert won == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / games))


def _idle_game(draw: random.Random, players: int, mafiosi: int) -> bool:
    """Return whether the Mafia wins if everybody votes or kills in half of the cases, played ballot by ballot."""
    living = [number < mafiosi for number in range(players)]
    while any(living) and 2 * sum(living) < len(living):
        votes = [0] * len(living)
        for voter in range(len(living)):
            if draw.random() < 0.5:
                votes[draw.choice([other for other in range(len(living)) if other != voter])] += 1
        if any(votes):
            del living[draw.choice([number for number, count in enumerate(votes) if count == max(votes)])]
        if 2 * sum(living) < len(living) and any(draw.random() < 0.5 for mafioso in living if mafioso):
            living.remove(False)
    return any(living)


def test_the_originals_intervals_hold_their_means(originals: ModuleType) -> None:
    draw = random.Random(1)
    episodes = [sum((draw.random() < 0.3) << bit for bit in range(22)) for _ in range(200)]
    low, high = originals.crafter_score_interval(episodes)
    assert low < originals.crafter_score(episodes) < high
    low, high = originals.mean_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 1.96 / math.sqrt(3), 2 + 1.96 / math.sqrt(3)))
