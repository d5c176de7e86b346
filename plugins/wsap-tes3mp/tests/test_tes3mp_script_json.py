"""The JSON of the server-side script, beside Python's."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lua_server import LuaServer


@cache
def codec_of(lua: str) -> Any:
    """Return the scripts' way from text to text."""
    codec = "function(text) local json = require('lua.json') local value, why = json.decode(text) "
    return LuaServer(lua=lua).lua.eval(
        codec + "if value == nil then return nil, why end return json.encode(value), '' end"
    )


def recoded(lua: str, text: bytes) -> tuple[bytes | None, str]:
    """Return what decoding and encoding make of a text, and what decoding complained of."""
    found = codec_of(lua)(text.decode("latin-1"))
    return (found[0].encode("latin-1") if found[0] is not None else None), found[1]


values = st.recursive(
    st.booleans() | st.integers(-(2**52), 2**52) | st.floats(-1e6, 1e6, allow_subnormal=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values, lua=st.sampled_from(["luajit21", "lua51"]), ascii_only=st.booleans())
def test_what_python_writes_comes_back_the_same(value: Any, lua: str, ascii_only: bool) -> None:
    text, why = recoded(lua, json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))
    assert text is not None, why
    assert b"\n" not in text
    assert _close(json.loads(text), value)


def _close(left: Any, right: Any) -> bool:
    if isinstance(right, bool) or not isinstance(right, int | float):
        if isinstance(right, list):
            return isinstance(left, list) and len(left) == len(right) and all(map(_close, left, right))
        if isinstance(right, dict):
            return (
                isinstance(left, dict) and left.keys() == right.keys() and all(_close(left[k], right[k]) for k in right)
            )
        return bool(left == right) and isinstance(left, type(right))
    return isinstance(left, int | float) and math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    text=st.binary(max_size=30) | st.text(alphabet='[]{}",:0123456789eE+-.\\u truefalsn', max_size=20).map(str.encode)
)
def test_what_is_no_json_is_refused_and_what_is_some_is_not(text: bytes) -> None:
    try:
        wanted = json.loads(text.decode("utf-8"), parse_constant=lambda _: 1 / 0)
        fine = True
    except (ValueError, ZeroDivisionError):
        fine = False
    found, _ = recoded("luajit21", text)
    if fine and wanted is not None and not _strange(wanted):
        assert found is not None, text
        assert _close(json.loads(found), _without_nulls(wanted))
    elif not fine:
        assert found is None, text


def _strange(value: Any) -> bool:
    """Whether Python allows what the script does not: halves of characters, numbers beyond a double."""
    if isinstance(value, list):
        return any(map(_strange, value))
    if isinstance(value, dict):
        return any(_strange(key) or _strange(item) for key, item in value.items())
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    return isinstance(value, int | float) and abs(value) > 2**52


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "text",
    [
        b"", b"nul", b"[1,]", b"{1:2}", b'{"a" 1}', b"01", b"-", b"1.", b".5", b"1e", b"+1", b"NaN", b"Infinity",
        b"1e999", b'"\x01"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\x"', b'"\\ud800"', b'"\\ud800\\u0041"',
        b'"\\udc00"',
        b'"\\u12g4"', b"[" * 40 + b"]" * 40, b"[1] 2", b"{", b'"abc', b"[1 2]", b"1.e5", b"--1", b"0x10", b'{"a":}',
    ],
)  # fmt: skip
def test_these_are_no_json(text: bytes) -> None:
    assert recoded("luajit21", text)[0] is None
    assert recoded("lua51", text)[0] is None


def test_empty_tables_and_numbers_that_are_none() -> None:
    make = LuaServer().lua.eval
    write = make("require('lua.json').encode")
    assert write(make("{}")) == "{}"
    assert write(make("require('lua.json').list()")) == "[]"
    assert write(make("{ a = 0/0, b = 1/0, c = -1/0, d = 2^60, e = 0.1, f = '\\255\\0\\127' }")) == (
        '{"a":null,"b":null,"c":null,"d":1.1529215046068e+18,"e":0.1,"f":"?\\u0000\\u007f"}'
    )
    for broken in ("function() end", "(function() local t = {} t.t = t return t end)()"):
        with pytest.raises(Exception, match="json"):
            write(make(broken))
