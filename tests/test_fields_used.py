"""Fields of the protocol and of specs: each is set by some code of ours, and read by some, or the reason is here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

from wsap_core import protocol, specs

ROOT = Path(__file__).parent.parent
TYPES = {
    name: kind
    for module in (protocol, specs)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith("wsap_core")
}
OF_EACH_BODY = (
    "It is in the canonical form of each observation with a body: without it every recorded trajectory would have "
    "another hash. Games in other processes may set it, for models that read the observation as JSON."
)
UNSET = {
    "AdapterSpec.former_names": "No game of ours has been renamed; one of somebody else may be.",
    "AdapterSpec.max_worlds": "No game of ours has a limit of worlds; one on a server of its own may have.",
    "AvatarRoster.active_avatar_id": "An agent whose avatars the nexus counts is entering a game, so it is in none.",
    "DeathEvent.xp_lost": "No game of ours has experience points. One in another process may report them, and the "
    "event `died` records what it reports.",
    "Effect.remaining": "No effect of our games ends by itself; that of others is shown with the time left.",
}
"""Fields that nothing of ours sets -> why they are there."""
UNREAD = {"Avatar.respawn_point": OF_EACH_BODY, "EmbodiedObservation.velocity": OF_EACH_BODY}
"""Fields that nothing of ours reads but the encoding of messages -> why they are there."""


@cache
def sources() -> tuple[ast.Module, ...]:
    """The syntax trees of all code that is distributed."""
    folders = [ROOT / "wsap_core", ROOT / "nexus" / "wsap_nexus", *ROOT.glob("plugins/wsap-*/wsap_*")]
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in paths)


def used() -> tuple[frozenset[str], frozenset[str]]:
    """The names that code sets, by keyword, by position in a call of one of the types, as a key or an attribute; and
    those that it reads, as an attribute or by a text."""
    set_, read = set[str](), set[str]()
    for tree in sources():
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                set_.update(_given(node))
            elif isinstance(node, ast.Attribute):
                # The event `died` has the fields of a death, with a prefix.
                (set_ if isinstance(node.ctx, ast.Store) else read).update(
                    {node.attr, node.attr.removeprefix("death_")}
                )
            elif isinstance(node, ast.Dict):
                set_.update(
                    key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                read.update(re.findall(r"[a-z_]+", node.value))
    return frozenset(set_), frozenset(read)


def _given(call: ast.Call) -> Iterator[str]:
    yield from (word.arg for word in call.keywords if word.arg is not None)
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called in TYPES:
        spread = any(isinstance(each, ast.Starred) for each in call.args)
        names = [field.name for field in fields(TYPES[called])]
        yield from names if spread else names[: len(call.args)]


FIELDS = sorted(f"{name}.{field.name}" for name, kind in TYPES.items() for field in fields(kind))


@pytest.mark.slow
def test_each_field_is_set_by_something_and_read_by_something() -> None:
    given, read = used()
    assert {name for name in FIELDS if name.partition(".")[2] not in given} == set(UNSET)
    assert {name for name in FIELDS if name.partition(".")[2] not in read} == set(UNREAD)


def test_what_is_listed_exists_and_has_a_reason() -> None:
    assert {*UNSET, *UNREAD} <= set(FIELDS)
    assert all(len(reason) > 10 for reason in (*UNSET.values(), *UNREAD.values()))
