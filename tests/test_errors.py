"""The tree of errors: as it is drawn, with codes that programs can rely on."""

from __future__ import annotations

import http
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsap_core import errors
from wsap_core.errors import UnknownNameError, WsapError
from wsap_core.seams import model_errors as errors_of_models


def tree(cls: type[WsapError] = WsapError) -> Iterator[type[WsapError]]:
    yield cls
    for below in cls.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from tree(below)


TREE = list(tree())
DRAWN = re.compile(r"^ {4}(?P<line>[│├└─ ]*)(?P<name>\w+Error)(?: {2,}.*?)?(?: +exit (?P<exit>\d+))?$", re.MULTILINE)


def test_the_tree_is_as_it_is_drawn() -> None:
    drawn: list[tuple[str, str]] = []
    above: list[str] = []
    for match in DRAWN.finditer(errors.__doc__ or ""):
        depth = len(match["line"]) // 4
        above[depth:] = [match["name"]]
        drawn.append((above[depth - 1] if depth else "Exception", match["name"]))
    assert drawn == [(cls.__bases__[0].__name__, cls.__name__) for cls in TREE]


def test_the_exit_statuses_are_as_they_are_drawn() -> None:
    drawn = {match["name"]: int(match["exit"]) for match in DRAWN.finditer(errors.__doc__ or "") if match["exit"]}
    own = {cls.__name__: cls.exit_code for cls in TREE if "exit_code" in vars(cls)}
    assert drawn == {name: code for name, code in own.items() if name != "WsapError"}
    assert WsapError.exit_code == 1


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in TREE]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code) for code in codes)


def test_an_exit_status_says_one_thing() -> None:
    first = {}
    for cls in TREE:
        first.setdefault(cls.exit_code, cls)
        assert issubclass(cls, first[cls.exit_code])
    assert 0 not in first


@pytest.mark.parametrize("cls", TREE)
def test_an_error_maps_to_a_status_of_http(cls: type[WsapError]) -> None:
    assert 400 <= http.HTTPStatus(cls.http_status) < 600


def test_suggestions_are_like_the_name_and_few() -> None:
    known = ["play", "plugins", "replay", "runs", "games"]
    assert UnknownNameError("command", "plya", known).suggestions[0] == "play"
    assert UnknownNameError("command", "gmes", known).suggestions == ("games",)
    assert UnknownNameError("command", "xyzzy", known).suggestions == ()
    assert (
        str(UnknownNameError("game", "x", [], hint="Look elsewhere.")) == "There is no game called 'x'. Look elsewhere."
    )


def test_every_exit_status_is_in_the_reference_of_the_commands() -> None:
    from wsap_core.cli.app import BROKEN_PIPE, INTERRUPTED

    page = (Path(__file__).parent.parent / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    models = {errors_of_models.BackendError.exit_code, *(cls.exit_code for cls in errors_of_models.PAUSES)}
    listed = [int(code) for code in re.findall(r"^\| (\d+) \| \S", page, re.MULTILINE)]
    assert listed == sorted({0, BROKEN_PIPE, INTERRUPTED, *(cls.exit_code for cls in TREE), *models})


OTHERS = {
    2: {"nexus/wsap_nexus/cli/nexus/connection.py", "nexus/wsap_nexus/client/parts.py"},  # the nexus refused it
    3: {"plugins/wsap-llm/wsap_llm/mcp/connection.py"},  # a server of tools failed
    4: {"plugins/wsap-tes3mp/wsap_tes3mp/protocol/errors.py"},  # a bridge to a world failed
}
"""The modules outside the kernel that set an exit status, with the meaning that it has in the kernel."""


def test_no_distribution_gives_an_exit_status_a_second_meaning() -> None:
    root, setting = Path(__file__).parent.parent, re.compile(r"exit_code(?:: ClassVar\[int\])? ?= ?(\d+)")
    found: dict[int, set[str]] = {}
    for folder in (root / "nexus" / "wsap_nexus", *(root / "plugins").glob("*/wsap_*")):
        for file in folder.rglob("*.py"):
            for code in setting.findall(file.read_text(encoding="utf-8")):
                found.setdefault(int(code), set()).add(file.relative_to(root).as_posix())
    assert found == OTHERS
