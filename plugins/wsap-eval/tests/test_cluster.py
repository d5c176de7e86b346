"""Episodes on a real Ray cluster of two nodes on one machine, of which one is lost in the middle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wsap_core.errors import MissingServiceError, UsageError
from wsap_eval.jobs.runner import Progress, Reports
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import SCORE_COLUMNS
from wsap_eval.run import NO_BUDGET, Evaluation, evaluate
from wsap_llm.kit import BudgetLimits

pytestmark = pytest.mark.xdist_group("ray")


def evaluation(game: str, seeds: int = 24, on: str = "ray", limits: BudgetLimits = NO_BUDGET) -> Evaluation:
    entrants = (Entrant(agent="random"),)
    entry = GameEntry(game=game, label="hazard", options={"steps": "2000"}, metric="reward")
    return Evaluation(
        Suite(name="cluster", games=(entry,), entrants=entrants, seeds=Seeds(count=seeds)),
        entrants,
        on=on,
        limits=limits,
    )


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingServiceError, match=r"pip install .*wsap-eval\[ray\]'"):
        evaluate(evaluation("minigrid", 1), tmp_path)


def test_a_limit_on_all_episodes_is_refused_on_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not supported with --on"):
        evaluate(evaluation("minigrid", 1, limits=BudgetLimits(calls=5)), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_lost_node_changes_nothing(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray, in wsap-eval[ray]")
    from ray.cluster_utils import Cluster

    shutil.copy(Path(__file__).with_name("hazard.py"), tmp_path)
    game = f"{tmp_path / 'hazard.py'}:Hazard"
    here = evaluate(evaluation(game, on=""), tmp_path / "here")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    lost = cluster.add_node(num_cpus=2)
    ray.init(cluster.address, log_to_driver=False)
    try:

        def lose(so_far: Progress) -> None:
            if so_far.played == 6:
                cluster.remove_node(lost, allow_graceful=False)

        there = evaluate(evaluation(game), tmp_path / "there", Reports(progress=lose))
        assert lost not in cluster.worker_nodes
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert there.missing == 0
    for one, other in zip(here.records, there.records, strict=True):
        assert [getattr(one, column) for column in SCORE_COLUMNS] == [
            getattr(other, column) for column in SCORE_COLUMNS
        ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_json_is_json_even_if_a_node_is_lost(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray, in wsap-eval[ray]")
    from ray.cluster_utils import Cluster

    shutil.copy(Path(__file__).with_name("hazard.py"), tmp_path)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    lost = cluster.add_node(num_cpus=2)
    words = [
        *("--game", f"{tmp_path / 'hazard.py'}:Hazard", "--entrant", "random", "--seeds", "200", "--steps", "1500"),
        *("--out", str(tmp_path / "out"), "--on", "ray", "--json"),
    ]
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from wsap_core.cli import main; sys.exit(main())", "eval", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RAY_ADDRESS": cluster.address},
        )  # fmt: skip
        episodes, deadline = tmp_path / "out" / "episodes.jsonl", time.monotonic() + 240
        while process.poll() is None and not (episodes.exists() and len(episodes.read_bytes().splitlines()) > 5):
            assert time.monotonic() < deadline, "no episode ended"
        assert process.poll() is None, "the evaluation was over before the node was lost"
        cluster.remove_node(lost, allow_graceful=False)
        out, told = process.communicate(timeout=300)
    finally:
        cluster.shutdown()
    assert process.returncode == 0, told
    assert json.loads(out)["missing"] == 0, out[:500]
