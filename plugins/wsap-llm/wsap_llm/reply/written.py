"""What a reply says while it is being written, for people who watch."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import from_json

from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.shapes import REASON_WORDS

_FENCES = ("```json", "```")


def in_words(written: str) -> str:
    """Return the texts and values of a reply in JSON, however much of it is written, without its punctuation.

    The reasoning comes as it is, other members as `name: value`, each on a line. Text that is not JSON is returned
    unchanged.
    """
    text = written.lstrip()
    for fence in _FENCES:
        text = text.removeprefix(fence).lstrip()
    if not text.startswith("{"):
        return written
    try:
        value = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return written
    return "\n".join(_lines(value)) if isinstance(value, dict) else written


def _lines(value: Mapping[str, JsonValue]) -> list[str]:
    lines = [(key, _told(each)) for key, each in value.items()]
    return [line if key.lower() in REASON_WORDS else f"{key}: {line}" for key, line in lines if line]


def _told(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {line}" for key, each in value.items() if (line := _told(each)))
    if isinstance(value, list):
        return ", ".join(line for each in value if (line := _told(each)))
    return {None: "", True: "yes", False: "no"}[value] if value is None or isinstance(value, bool) else str(value)
