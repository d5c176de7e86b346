"""The protocol: payloads of each version, and the reference, which is written from the models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError
from tools_kit import tool_of

from wsap_tes3mp.protocol import bridge, commands, perception
from wsap_tes3mp.protocol.errors import SEED_CODES, SchemaMismatchError, check_version
from wsap_tes3mp.protocol.perception import PerceptionOutput

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "reference"
SEED = next(iter((HERE.parents[3] / "shared" / "seeds").glob("001_*")), None)
AGAIN = "; run: python tools/write_perception_command.py"
reference = tool_of("write_perception_command")
GOLDEN = [
    (version, name, payload)
    for version in ("1.0.0", "1.1.0")
    for name, payload in json.loads((HERE / "golden" / f"{version}.json").read_text()).items()
]


def model(name: str) -> type[BaseModel]:
    """Return the model of a name."""
    kind: type[BaseModel] = next(vars(m)[name] for m in (perception, commands, bridge) if name in vars(m))
    return kind


@pytest.mark.parametrize(("version", "name", "payload"), GOLDEN)
def test_payloads_of_each_version_are_read_and_written_as_they_are(version: str, name: str, payload: Any) -> None:
    read = model(name).model_validate_json(json.dumps(payload))
    written = read.model_dump(mode="json", exclude_unset=True)
    assert written == payload
    assert list(written) == list(payload)
    schema = {**reference.schemas(), "$ref": f"#/$defs/{name}"}
    Draft202012Validator(schema).validate(payload)
    assert model(name).model_validate_json(json.dumps({**payload, "moon": [1]})) == read


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": "2026-03-21T14:30:00"},
        {"health": {"current": 3, "max": 2}},
        {"health": {"current": 0, "max": 0}},
        {"location": {"cell": "", "x": 0, "y": 0, "z": 0, "interior": True}},
        {"active_quests": None},
        {"agent_id": ""},
        {"sequence": -1},
    ],
)
def test_what_the_seed_forbids_is_refused(change: dict[str, Any]) -> None:
    payload = dict(GOLDEN[0][2])
    with pytest.raises(ValidationError):
        PerceptionOutput.model_validate({**payload, **change})


@pytest.mark.parametrize("version", ["1.0.0", "1.0.7", "1.99.0", "0.1.0"])
def test_versions_up_to_this_major_are_understood(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["2.0.0", "10.1.0", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0\n", "", "1.0.0-rc1"])
def test_newer_majors_and_what_is_no_version_are_refused(version: str) -> None:
    with pytest.raises(SchemaMismatchError):
        check_version(version)


def test_the_reference_is_as_the_models_have_it() -> None:
    assert (DOCS / "perception-command.json").read_text("utf-8") == reference.schemas_text(), AGAIN
    page = (DOCS / "perception-command.md").read_text("utf-8")
    assert page == reference.with_tables(page), AGAIN


@pytest.mark.skipif(SEED is None, reason="the seed is not here")
def test_the_tables_are_those_of_the_seed() -> None:
    assert SEED is not None
    text = SEED.read_text("utf-8")
    codes = re.findall(r"\| `([A-Z_]+)`\s*\| (\d{3})\s*\| (yes|no)\s*\|", text)
    assert codes == [(kind.code, str(kind.http_status), "yes" if kind.retryable else "no") for kind in SEED_CODES]
    for kind, section in ((PerceptionOutput, "3.1"), (commands.CommandInput, "4.1")):
        told = text.split(f"### {section} Field Reference")[1].split("###")[0]
        ours = {path: needed for path, _, needed in reference.fields(kind)}
        for path, needed in re.findall(r"\| `([a-z_./]+)`\s*\| [^|]*\| (yes|no)\s*\|", told):
            paths = [f"location.{axis}" for axis in "xyz"] if path == "location.x/y/z" else [path]
            assert [ours[each] for each in paths] == [needed == "yes"] * len(paths), path
    named = text.split("### 4.2 Command Types")[1].split("##")[0]
    assert re.findall(r"\| `([a-z_]+)`\s*\| [A-Z]", named) == list(commands.PARAMS)
