"""The exported JSON Schemas: the reference is the jsonschema package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import Codec, EmbodiedObservation, Observation, PluginHost
from wsap_core.errors import UnknownNameError, WireError
from wsap_core.factories import load
from wsap_core.protocol.wire import encode
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.schemas import MESSAGES, all_schemas, field_texts, message_schema, names, to_json

KEPT = Path(__file__).parent.parent / "docs" / "reference" / "schemas"


@pytest.fixture(scope="session")
def validators() -> dict[str, jsonschema.Draft202012Validator]:
    """A validator for each message, of the published package."""
    return {name: jsonschema.Draft202012Validator(message_schema(name)) for name in names()}


@pytest.mark.parametrize("name", names())
def test_a_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(message_schema(name))


@pytest.mark.parametrize("name", names())
def test_the_kept_file_is_what_is_exported(name: str) -> None:
    assert (KEPT / f"{name}.json").read_text(encoding="utf-8") == to_json(message_schema(name)), (
        "Write it anew: wsap schema --output docs/reference/schemas"
    )


def test_there_is_a_kept_file_for_every_message_and_no_other() -> None:
    assert {path.stem for path in KEPT.iterdir()} == set(names())


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("name", sorted(MESSAGES))
@given(data=st.data())
def test_what_is_sent_fits_its_schema(
    name: str,
    messages: Mapping[str, Any],
    validators: Mapping[str, jsonschema.Draft202012Validator],
    data: st.DataObject,
) -> None:
    sent = data.draw(messages[name])
    validators[name].validate(encode(sent))
    validators["Envelope"].validate({"protocol_version": PROTOCOL_VERSION, "type": name, "body": encode(sent)})


WRONG = [None, True, 3, 2.5, "text", [], ["text"], {}, {"a": None}]


@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("name", sorted(set(MESSAGES) - {"View"} - {n for n in MESSAGES if n.endswith("Block")}))
@given(data=st.data())
def test_the_kernel_reads_a_damaged_message_exactly_when_the_schema_allows_it(
    name: str,
    messages: Mapping[str, Any],
    validators: Mapping[str, jsonschema.Draft202012Validator],
    data: st.DataObject,
) -> None:
    body = encode(data.draw(messages[name]))
    key = data.draw(st.sampled_from(sorted(body.keys() - {"$type"})))
    if data.draw(st.booleans()):
        del body[key]
    else:
        body[key] = data.draw(st.sampled_from(WRONG))
    try:
        Codec().decode(MESSAGES[name], body)
    except WireError:
        read = False
    else:
        read = True
    assert read == validators[name].is_valid(body), (key, body)


@pytest.mark.parametrize(
    "block", ["ChatBlock", "GridMapBlock", "ImageBlock", "PlaceGraphBlock", "TableBlock", "TextBlock", "TimelineBlock"]
)
def test_a_block_of_a_view_says_its_kind(block: str, validators: Mapping[str, Any]) -> None:
    body = {"text": "", "base64": ""}
    assert not validators[block].is_valid(body)
    kinds = [
        k
        for k in ("chat", "grid", "image", "places", "table", "text", "timeline")
        if validators[block].is_valid({**body, "kind": k})
    ]
    assert len(kinds) == 1


def test_a_tagged_subclass_of_the_protocol_is_held_to_its_own_schema(validators: Mapping[str, Any]) -> None:
    result = {"success": True, "observation": {"$type": "EmbodiedObservation"}}
    assert not validators["ActionResult"].is_valid(result)
    result["observation"] = {"$type": "EmbodiedObservation", "avatar": {"avatar_id": "a", "game_id": "g"}}
    validators["ActionResult"].validate(result)
    result["observation"] = {"$type": "SomebodyElses", "anything": [1]}
    validators["ActionResult"].validate(result)


@pytest.mark.parametrize(
    "change",
    [{"protocol_version": "1"}, {"type": 3}, {"body": {"type": "tree", "distance": "far"}}, {"body": None}],
)
def test_an_envelope_is_checked_with_its_body(change: dict[str, Any], validators: Mapping[str, Any]) -> None:
    good = {"protocol_version": "1.0.0", "type": "Entity", "body": {"type": "tree"}}
    validators["Envelope"].validate(good)
    assert not validators["Envelope"].is_valid({**good, **change})


def test_every_field_of_every_message_is_there_but_what_stays_on_this_side() -> None:
    for name, cls in MESSAGES.items():
        properties = message_schema(name)["$defs"][name]["properties"].keys() - {"$type"}
        assert properties == cls.__dataclass_fields__.keys() - {"extras"}  # type: ignore[attr-defined]


def test_the_words_below_a_field_are_its_description() -> None:
    entity = message_schema("Entity")["$defs"]["Entity"]
    assert entity["properties"]["interactable"]["description"] == "Whether the agent can interact with it now."
    assert "extras" in field_texts(EmbodiedObservation)


def test_one_document_has_all_messages() -> None:
    assert all_schemas()["$defs"].keys() == set(names()) | {"AvatarState"}


def test_an_unknown_message_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'Observation'"):
        message_schema("Observatoin")


@dataclass(frozen=True)
class Tide(Observation):
    """A plugin's observation."""

    height: float = field(default=0.0, kw_only=True)


def test_what_a_plugin_adds_fits_the_schema_too(validators: Mapping[str, Any]) -> None:
    validators["Observation"].validate(encode(Tide(height=2.5)))


@pytest.mark.slow
def test_the_schemas_do_not_depend_on_what_was_loaded_before() -> None:
    program = "from wsap_nexus.schemas import all_schemas, to_json; print(to_json(all_schemas()), end='')"
    alone = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    for entry in PluginHost.discovered().games.all():
        _ = [load(reference) for reference in entry.spec.wire_types]
    assert alone == to_json(all_schemas())
