"""verifiers' own loader, environment and command, from an environment of their own, against a server over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from llm_server import ModelServer, Say

THEIRS = os.environ.get("WSAP_TESTS_VERIFIERS", "")
"""The folder with the programs of an environment with verifiers and the games; `nox -s extras` makes one."""

pytestmark = [
    pytest.mark.skipif(not THEIRS, reason="WSAP_TESTS_VERIFIERS names no environment with verifiers"),
    pytest.mark.xdist_group("verifiers"),
]

ROW, COLUMN, GONE = "qwen3:8b", "llama3.2:latest", "llava:7b"
OWN = """
from wsap_trainers.verifiers import WsapHarness, env_for

MatrixTaskset, MatrixEnv = env_for("matrix", options={"game": "prisoners-dilemma", "rounds": 3})
__all__ = ["MatrixEnv", "MatrixTaskset", "WsapHarness"]
"""
FALLS = '''"""A clerk."""
from wsap_core import ActionDef, ActionResult, ActionSpace, Observation


class Clerk:
    game_description = "Stamp forms."
    action_space = ActionSpace([ActionDef("stamp", "Stamp a form")])

    def reset(self, seed=None):
        self.step = 0
        return self.observe()

    def observe(self):
        return Observation(step=self.step)

    def act(self, action):
        self.step += 1
        if self.step == 2:
            raise RuntimeError("The office is gone.")
        return ActionResult(True, "Done.", 1.0, observation=self.observe())
'''
DRIVE = """
import asyncio, itertools, json, sys
import verifiers.v1 as vf
from verifiers.v1.utils.loaders import resolve_env_config

async def played(module, model, taskset, roles):
    env = vf.load_environment(resolve_env_config({"taskset": {"id": module, **taskset}, **roles}))
    ctx = vf.ModelContext(model=model, client=vf.EvalClientConfig(base_url=sys.argv[1], api_key_var="A_KEY"))
    tasks = list(itertools.islice(env.taskset, 2))
    async with env.serving():
        episode = await env.run_episode(tasks[0], ctx)
    return {
        "bounded": env.taskset.bounded, "keys": [task.key for task in tasks], "ok": episode.ok,
        "errors": [str(error.message) for error in episode.errors],
        "traces": {trace.agent.name: {
            "rewards": {name: reward.score for name, reward in trace.rewards.items()}, "metrics": trace.metrics,
            "ok": trace.ok, "turns": trace.num_turns, "stop": trace.stop_condition,
        } for trace in episode.traces},
    }

print(json.dumps({name: asyncio.run(played(*how)) for name, how in json.loads(sys.argv[2]).items()}))
"""
EPISODES: dict[str, Any] = {
    "whole": ("own-matrix", "unused", {}, {"row": {"model": ROW}, "column": {"model": COLUMN}}),
    "model gone": ("own-matrix", ROW, {}, {"column": {"model": GONE}}),
    "game gone": ("own-clerk", ROW, {}, {}),
    "turns": ("own-matrix", ROW, {}, {"row": {"max_turns": 2}}),
    "steps": ("own-matrix", ROW, {"max_steps": 1, "split": "test"}, {}),
}
"""Name -> module, model, settings of the taskset and of roles."""


def answer(request: Any) -> Say:
    """Row acts in good form, column never says anything that can be used, and one model is gone."""
    if request["model"] == GONE:
        return Say(status=503, error="overloaded")
    if request["model"] == COLUMN:
        return Say("I would rather not say.")
    return Say('{"action": "%s", "params": {}}' % ("stamp" if "stamp" in str(request["messages"]) else "defect"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("verifiers")
    (tmp_path / "own_matrix.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "clerk.py").write_text(FALLS, encoding="utf-8")
    (tmp_path / "own_clerk.py").write_text(
        f"from wsap_trainers.verifiers import WsapHarness, env_for\n"
        f"ClerkTaskset, ClerkEnv = env_for({str(tmp_path / 'clerk.py:Clerk')!r})\n"
        f'__all__ = ["ClerkEnv", "ClerkTaskset", "WsapHarness"]\n',
        encoding="utf-8",
    )
    return tmp_path


def run(folder: Path, program: str, *arguments: str) -> str:
    """Return what a program of their environment prints."""
    done = subprocess.run(
        [str(Path(THEIRS) / program), *arguments], capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "A_KEY": "x", "WSAP_HOME": str(folder), "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def episodes(folder: Path) -> dict[str, Any]:
    """All episodes, played in one process: importing verifiers takes seconds."""
    with ModelServer(answer) as server:
        told = run(folder, "python", "-c", DRIVE, server.base_url, json.dumps(EPISODES))
    return dict(json.loads(told.splitlines()[-1]))


def test_a_game_of_two_models_is_played_and_each_is_paid_once_as_in_a_run(episodes: dict[str, Any]) -> None:
    told = episodes["whole"]
    assert told["ok"], told
    assert told["bounded"] is False
    assert [key.rpartition(":")[0] for key in told["keys"]] == ["matrix:1000000", "matrix:1000001"]
    row, column = told["traces"]["row"], told["traces"]["column"]
    assert (row["turns"], column["turns"]) == (3, 9)
    assert row["metrics"] == {"refused": 0.0, "repaired": 0.0, "forfeits": 0.0, "truncated": 0.0}
    assert column["metrics"] == {"refused": 9.0, "repaired": 0.0, "forfeits": 3.0, "truncated": 0.0}
    # By the rules of the dilemma, three rounds of 5 to 0: column's default action is to cooperate.
    assert (row["rewards"], column["rewards"]) == ({"reward": 15.0}, {"reward": 0.0})


@pytest.mark.parametrize(
    ("name", "words"), [("model gone", "the model of column failed"), ("game gone", "The office is gone")]
)
def test_an_outage_is_no_reward_at_all_not_a_zero(episodes: dict[str, Any], name: str, words: str) -> None:
    told = episodes[name]
    assert told["ok"] is False
    assert words in told["errors"][0]
    assert [trace["rewards"] for trace in told["traces"].values()] == [{}] * len(told["traces"])
    assert not any(trace["ok"] for trace in told["traces"].values())


def test_a_limit_ends_an_episode_with_what_was_paid(episodes: dict[str, Any]) -> None:
    turns, steps = episodes["turns"], episodes["steps"]
    assert turns["ok"], turns
    assert {trace["metrics"]["truncated"] for trace in turns["traces"].values()} == {1.0}
    assert turns["traces"]["row"]["rewards"] == {"reward": 2.0}
    assert (steps["bounded"], steps["traces"]["row"]["turns"]) == (True, 1)
    assert steps["traces"]["row"]["metrics"]["truncated"] == 1.0


def test_their_own_command_evaluates_it(folder: Path) -> None:
    with ModelServer(Say('{"action": "defect", "params": {}}')) as server:
        run(
            folder, "vf-eval", "own-matrix", "-m", ROW, "--client.base-url", server.base_url,
            "--client.api-key-var", "A_KEY", "--env.taskset.split", "test", "--select.limit", "2", "--no-push",
            "-o", str(folder / "out"),
        )  # fmt: skip
    (traces,) = (folder / "out").rglob("traces.jsonl")
    assert len(traces.read_text("utf-8").splitlines()) in (2, 4)
    assert len(server.requests) == 12
