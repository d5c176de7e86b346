"""Tournaments of which `games.csv` and `ratings.csv` are kept: the same games give the same bytes.

The kept files were written before tournaments became evaluations. Delete a folder of `golden` only with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wsap_tossim.tournament.plan import Settings, entrants_of
from wsap_tossim.tournament.run import run_tournament

GOLDEN = Path(__file__).parent / "golden"
QUICK = {"mode": "five", "rules": "quick"}
SHORT = {**QUICK, "longest_game": 3}


@dataclass(frozen=True)
class Cup:
    """A small tournament: its settings, and how its games are played."""

    entrants: tuple[str, ...]
    options: Mapping[str, Any]
    games: int
    seed: int = 0
    seating: str = "mixed"
    resamples: int = 5
    jobs: int = 1
    before: tuple[int, ...] = ()
    """Numbers of games after which it was stopped and continued."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    beliefs: bool = False

    def settings(self) -> Settings:
        return Settings(
            entrants_of(self.entrants), self.options, self.seed, self.seating, self.model_options, self.beliefs
        )


TWO = ("one=scripted", "two=random")
CUPS: Mapping[str, Cup] = {
    "five-of-two": Cup(TWO, QUICK, 4, seed=3),
    "five-by-sides": Cup(TWO, QUICK, 4, seed=3, seating="sides"),
    "seven-of-three": Cup((*TWO, "three=scripted"), {"mode": "seven", "rules": "classic"}, 7, seed=11),
    "nine-by-sides": Cup((*TWO, "three=scripted"), {"mode": "nine", "rules": "classic"}, 3, seed=5, seating="sides"),
    "named": Cup(("scripted", "random"), {**QUICK, "names": "Ann,Bo,Cy,Dana,Eve"}, 3, seed=1),
    "intervals": Cup(TWO, QUICK, 41, seed=7, resamples=3),
}
MODELS: Mapping[str, Cup] = {
    "with-a-model": Cup(("one=scripted", "bot=scripted/x"), SHORT, 2, seed=2, model_options={"model.reply": "wait"}),
    "with-beliefs": Cup(
        ("one=scripted", "bot=scripted/x"), SHORT, 2, seed=2, model_options={"model.reply": "wait"}, beliefs=True
    ),
}
TABLES = ("games.csv", "ratings.csv")


def played(cup: Cup, folder: Path) -> dict[str, bytes]:
    for games in (*cup.before, cup.games):
        run_tournament(folder, cup.settings(), games, jobs=cup.jobs, resamples=cup.resamples)
    return {name: (folder / name).read_bytes() for name in TABLES}


def kept(name: str) -> dict[str, bytes]:
    return {table: (GOLDEN / name / table).read_bytes() for table in TABLES}


@pytest.mark.parametrize("name", CUPS)
def test_the_same_games_give_the_same_tables(name: str, tmp_path: Path) -> None:
    assert played(CUPS[name], tmp_path) == kept(name)


def test_a_continued_tournament_gives_the_same_tables(tmp_path: Path) -> None:
    cup = CUPS["seven-of-three"]
    parts = Cup(cup.entrants, cup.options, cup.games, cup.seed, before=(1, 4))
    assert played(parts, tmp_path) == kept("seven-of-three")


@pytest.mark.slow
def test_worker_processes_give_the_same_tables(tmp_path: Path) -> None:
    cup = CUPS["seven-of-three"]
    parts = Cup(cup.entrants, cup.options, cup.games, cup.seed, jobs=2, before=(2,))
    assert played(parts, tmp_path) == kept("seven-of-three")


@pytest.mark.parametrize("name", MODELS)
def test_models_get_the_same_tables(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wsap_nexus", reason="needs the runtime (wsap-nexus)")
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    assert played(MODELS[name], tmp_path / "cup") == kept(name)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_cluster_gives_the_same_tables(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray, in wsap-eval[ray]")
    from ray.cluster_utils import Cluster

    cup = CUPS["seven-of-three"]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    ray.init(cluster.address, log_to_driver=False)
    try:
        run_tournament(tmp_path, cup.settings(), cup.games, resamples=cup.resamples, on="ray")
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert {name: (tmp_path / name).read_bytes() for name in TABLES} == kept("seven-of-three")
