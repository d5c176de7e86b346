"""Showing an agent to others, and unlocking the page again, from the command line."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from cli_nexus_kit import environ_of, nexus, nexus_json, refused, running

pytestmark = pytest.mark.slow


def ask(url: str, token: str = "", body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers | {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_agent_is_shared_the_passes_listed_and_one_taken_back(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    assert refused(environ, "share", "ada")[1] == (
        "Error: A running nexus is needed to share; start it with: wsap nexus start"
    )
    with running(environ) as hub:
        shared = nexus_json(environ, "share", "ada", "--talk", "--hours", "2")
        page, _, token = shared["address"].partition("#pass=")
        assert page == hub.ready["url"]
        assert (shared["pass"]["talks"], token in json.dumps(shared["pass"])) == (True, False)
        status, told = ask(f"{page}nexus/pass", token)
        assert (status, told["target"]) == (200, "ada")
        said = nexus(environ, "share", "bob")
        assert said.startswith("Open this to watch bob, for 24 hours: http://")
        assert "It opens on this machine only" in said
        assert nexus(environ, "share", "--list").splitlines() == [
            "pass-0002  agent bob, for 24 hours",
            "pass-0001  agent ada, may talk, for 2 hours",
        ]
        assert nexus(environ, "share", "--revoke", "pass-0001").splitlines() == ["pass-0002  agent bob, for 24 hours"]
        assert ask(f"{page}nexus/pass", token)[0] == 401
        for words in (("share",), ("share", "ada", "--world", "w"), ("share", "nobody"), ("share", "--revoke", "x"),
                      ("share", "--list", "--talk"), ("share", "ada", "--play"), ("share", "ada", "--play", "--talk"),
                      ("share", "--world", "w", "--play"), ("share", "--list", "--play")):  # fmt: skip
            assert refused(environ, *words)[1].startswith("Error: ")


def test_a_seat_is_given_to_whoever_opens_the_address(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    with running(environ):
        nexus(environ, "agents", "add", "zoe", "--policy", "*=external")
        assert nexus(environ, "share", "zoe", "--play").startswith("Open this to play as zoe, for 24 hours: http://")
        page, _, token = nexus_json(environ, "share", "zoe", "--play")["address"].partition("#pass=")
        status, told = ask(f"{page}nexus/pass/turn?wait=60", token)
        assert (status, told["place"], told["title"]) == (200, "nexus", "Home")
        assert nexus(environ, "share", "--list").splitlines()[0] == "pass-0002  seat zoe, for 24 hours"


def test_a_new_key_unlocks_the_page_once(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    with running(environ) as hub:
        page, _, key = nexus_json(environ, "key")["address"].partition("#key=")
        assert page == hub.ready["url"]
        status, told = ask(f"{page}unlock", body={"key": key})
        assert (status, told["token"]) == (200, Path(hub.ready["token_file"]).read_text(encoding="ascii").strip())
        assert ask(f"{page}unlock", body={"key": key})[0] == 401
