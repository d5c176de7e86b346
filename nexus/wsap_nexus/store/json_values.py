"""Reads JSON of the database as strict JSON, whatever another program or an earlier version has written."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from wsap_core.protocol.wire import dumps

# Any, in this module: JSON.

_LOG = logging.getLogger(__name__)


def read_json(text: str | bytes) -> Any:
    """Return JSON data; NaN, infinities and numbers too large for a float, which JSON does not have, are read as None.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text, parse_constant=lambda word: None, parse_float=_finite_or_none)


def read_column(text: str | bytes) -> Any:
    """Return the data of a JSON column as `read_json` does; {} if it is unreadable, so that no list lacks its rows."""
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        _LOG.warning("A value in the database is not JSON, and is read as empty: %s", error)
        return {}


JSON_COLUMNS: Mapping[str, Any] = {"json_serializer": dumps, "json_deserializer": read_column}
"""How an engine writes and reads JSON columns."""


def finite(value: Any) -> Any:
    """Return JSON-ready data with None for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


def _finite_or_none(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
