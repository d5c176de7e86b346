"""The OpenAPI document: kept as the code has it, true of what is answered, and no request breaks the nexus."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from wire_server import Served, serving

from wsap_nexus.dashboard import app as page
from wsap_nexus.http.access.guard import HttpLimits

ROOT = Path(__file__).resolve().parents[3]
AGAIN = "; run: python tools/write_wire_reference.py"
SPEC = importlib.util.spec_from_file_location("write_wire_reference", ROOT / "tools" / "write_wire_reference.py")
assert SPEC is not None
assert SPEC.loader is not None
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)
EXAMPLES = int(os.environ.get("WSAP_FUZZ", "1"))
"""Requests for each route; more of them look longer."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = HttpLimits(rate=1e6, burst=1e6, body_seconds=2, heartbeat=0.1)
    with serving(tmp_path_factory.mktemp("nexus"), limits=limits) as nexus:
        nexus.register("eve").close()
        yield nexus


@pytest.mark.slow
def test_the_document_is_kept_as_the_code_has_it(served: Served) -> None:
    kept = (ROOT / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8")
    assert kept == reference.document(), AGAIN
    with served.client("") as anybody:
        assert anybody.get("/openapi.json").json() == json.loads(kept)


def test_every_code_is_told_of_with_what_it_means() -> None:
    page = (ROOT / "docs" / "reference" / "wire-api.md").read_text(encoding="utf-8")
    assert page == reference.with_codes(page), AGAIN
    for code, (status, _, meaning) in reference.codes().items():
        assert meaning, code
        assert 400 <= status < 600, code


def test_every_route_says_what_it_answers_and_how_it_refuses() -> None:
    document = json.loads(reference.document())
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            refusal = operation["responses"]["default"]["content"]["application/json"]["schema"]
            assert refusal == {"$ref": "#/components/schemas/ErrorAnswer"}
            assert "422" not in operation["responses"]
            for status, answer in operation["responses"].items():
                for kind, offered in answer.get("content", {}).items():
                    assert offered["schema"], f"{method} {path} {status} says nothing of its {kind}"
            if method != "get" and path.startswith("/nexus"):
                assert operation["security"] == [{"token": []}], (method, path)


def test_the_page_has_no_routes_of_its_own_but_to_unlock_it(served: Served) -> None:
    assert {getattr(route, "path", None) for route in page.router.routes} == {"/", "/unlock"}
    with served.client() as owner:
        assert owner.get("/dashboard/data/overview").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/nexus", None),
        ("GET", "/nexus/health", None),
        ("GET", "/nexus/games", None),
        ("GET", "/nexus/agents", None),
        ("GET", "/nexus/agents/{agent_id}", None),
        ("GET", "/nexus/agents/{agent_id}/sessions", None),
        ("GET", "/nexus/agents/{agent_id}/memories", None),
        ("GET", "/nexus/agents/{agent_id}/now", None),
        ("GET", "/nexus/overview", None),
        ("GET", "/nexus/log", None),
        ("GET", "/nexus/worlds", None),
        ("GET", "/nexus/runs", None),
        ("GET", "/nexus/agents/{agent_id}/observation", None),
        ("GET", "/nexus/agents/{agent_id}/action-space", None),
        ("POST", "/nexus/agents/{agent_id}/act", {"name": "list_games"}),
        ("POST", "/nexus/transit/enter", {"agent_id": "eve", "game": "crafter"}),
        ("POST", "/nexus/transit/exit", {"agent_id": "eve"}),
        ("POST", "/nexus/transit/exit", {"agent_id": "nobody"}),
    ],
)
@pytest.mark.slow
def test_what_is_answered_is_as_the_document_says(
    served: Served, method: str, path: str, body: dict[str, Any] | None
) -> None:
    document = json.loads(reference.document())
    with served.client() as owner:
        answer = owner.request(method, path.replace("{agent_id}", "eve"), json=body)
    responses = document["paths"][path][method.lower()]["responses"]
    said = responses.get(str(answer.status_code), responses["default"])
    schema = {**said["content"]["application/json"]["schema"], "components": document["components"]}
    Draft202012Validator(schema).validate(answer.json())


@pytest.mark.slow
def test_what_is_told_of_worlds_and_runs_is_as_the_document_says(served: Served) -> None:
    document = json.loads(reference.document())
    served.register("ivy").close()
    with served.client() as owner:

        def checked(path: str, **values: str) -> Any:
            response = owner.get(path.format(**values))
            assert response.status_code == 200, response.text
            said = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            Draft202012Validator({**said, "components": document["components"]}).validate(response.json())
            return response.json()

        assert owner.post("/nexus/transit/enter", json={"agent_id": "ivy", "game": "crafter"}).status_code == 201
        assert owner.post("/nexus/agents/ivy/act", json={"name": "noop"}).status_code == 200
        world = checked("/nexus/overview")["worlds"][0]["id"]
        run = checked("/nexus/worlds/{world_id}", world_id=world)["run"]
        assert checked("/nexus/worlds/{world_id}/view", world_id=world)["view"]["blocks"]
        assert checked("/nexus/agents/{agent_id}/now", agent_id="ivy")["observation"]["text"]
        assert owner.post("/nexus/transit/exit", json={"agent_id": "ivy"}).status_code == 200
        assert checked("/nexus/runs/{run_id}", run_id=run)["players"] == [{"id": "ivy", "name": "ivy", "world": world}]
        first = checked("/nexus/runs/{run_id}/steps", run_id=run)["steps"][0]
        step = checked("/nexus/runs/{run_id}/steps/{seq}", run_id=run, seq=str(first["seq"]))
        assert (step["action"], step["position"]) == ({"name": "noop", "parameters": {}}, 0)
        whole = checked("/nexus/agents/{agent_id}", agent_id="ivy")
        assert whole["visits"] == {"crafter": 1}
        assert checked("/nexus/agents/{agent_id}/sessions", agent_id="ivy")["sessions"] == whole["sessions"]


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_the_nexus(served: Served) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    document = json.loads(reference.document())
    # A stream has no end of its own; it is tried by itself.
    document["paths"].pop("/nexus/events")
    schema = schemathesis.openapi.from_dict(document)
    headers = {"Authorization": f"Bearer {served.token}"}
    broken: list[str] = []
    tried = 0

    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize="WSAP_FUZZ" not in os.environ,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def attempt(case: Any) -> None:
            nonlocal tried
            tried += 1
            if "wait" in (case.query or {}):
                case.query["wait"] = 0
            answer = case.call(base_url=served.url, headers=headers, timeout=300)
            if answer.status_code >= 500 and answer.status_code not in (501, 502, 503):
                broken.append(f"{case.method} {case.formatted_path}: {answer.status_code} {answer.text[:300]}")
            error = answer.json().get("error") if answer.status_code >= 400 else None
            if error is not None:
                assert sorted(error) == ["code", "details", "message", "retry", "timestamp"]

        modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
        for mode in modes:
            # A route that takes nothing can't be given anything wrong.
            with suppress(Unsatisfiable):
                given(case=operation.as_strategy(generation_mode=mode))(attempt)()
    assert not broken
    assert tried > 50
