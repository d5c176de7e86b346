"""OpenEnv's own checker and clients, from an environment of their own, which this package can't share."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from openenv_kit import served

from wsap_nexus import api

THEIRS = os.environ.get("WSAP_TESTS_OPENENV", "")
"""The folder with the programs of an environment with the package `openenv`; `nox -s extras` makes one."""

pytestmark = pytest.mark.skipif(not THEIRS, reason="WSAP_TESTS_OPENENV names no environment with openenv")

CLIENT = """
import json, sys
from openenv.core.generic_client import GenericEnvClient
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction

url = sys.argv[1]
with GenericEnvClient(base_url=url).sync() as env:
    told = [env.reset(seed=7, episode_id="theirs")]
    while not told[-1].done:
        told.append(env.step({"action": "noop"}))
    state = env.state()
    try:
        env.reset(split="test", index=200)
        refused = ""
    except RuntimeError as error:
        refused = str(error)
    task = env.reset(split="train", index=2).metadata["seed"]
    listed = env.step(ListToolsAction())
    tools = [tool["name"] for tool in listed.observation["tools"]]
    seen = env.step(CallToolAction(tool_name="noop", arguments={})).observation["result"]
print(json.dumps({"last": told[-1].metadata, "reward": sum(each.reward or 0.0 for each in told), "state": state,
                  "refused": refused, "task": task, "tools": tools, "seen": seen}))
"""


def run(program: str, *arguments: str) -> str:
    """Return what a program of their environment prints."""
    done = subprocess.run(
        [str(Path(THEIRS) / program), *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_their_checker_passes(tmp_path: Path) -> None:
    with served(tmp_path, "crafter") as server:
        report = json.loads(run("openenv", "validate", "--url", server.url, "--json"))
    assert report["passed"], report
    assert {each["id"]: each["passed"] for each in report["criteria"]} == dict.fromkeys(
        ("openapi_version_available", "health_endpoint", "metadata_endpoint", "schema_endpoint", "mcp_endpoint",
         "mode_endpoint_consistency"), True,
    )  # fmt: skip


def test_their_clients_play_the_same_game_as_an_agent_here(tmp_path: Path) -> None:
    with served(tmp_path, "crafter", options={"length": 5}) as server:
        told = json.loads(run("python", "-c", CLIENT, server.url).splitlines()[-1])
    played = api.play(
        "crafter", "always", agent_options={"action": "noop"}, seed=7, options={"length": 5}, record=False
    ).to_json()
    assert told["last"]["trajectory_hash"] == played["trajectory_hash"]
    assert told["last"]["truncated"] is True
    assert told["reward"] == pytest.approx(played["reward"])
    assert (told["state"]["episode_id"], told["state"]["step_count"]) == ("theirs", 5)
    assert "0 to 199, not 200" in told["refused"]
    assert told["task"] == 1_000_002
    assert "place_table" in told["tools"]
    assert told["seen"].startswith("You wait.")
