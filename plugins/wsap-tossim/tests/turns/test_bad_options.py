"""What a user gets wrong on the command line: one sentence, exit code 2, and nothing is begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsap_core.cli.app import run


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["roles=Sheriff,Doctor"], "has 2 players; a game has 5 to 15"),
        (["roles=Mayor,Mayor,Citizen,Citizen,Mafioso"], "more than one Mayor, which is unique"),
        (["roles=Mayor,Town Government,Citizen,Citizen,Mafioso"], "more unique roles than there are"),
        (["roles=Jester,Jester,Survivor,Survivor,Witch"], "nobody is on a side that can win"),
        (["roles=Mafioso,Godfather,Framer,Janitor,Forger"], "Mafia has no enemy"),
        (["roles=Sherif,Doctor,Citizen,Citizen,Mafioso"], "did you mean Sheriff?"),
        (["roles=Sheriff,,Doctor,Citizen,Mafioso"], "Slot 2 of the role list is empty"),
        (["roles=\x1b[31mred,Doctor,Citizen,Citizen,Mafioso"], "There is no role"),
        ([f"mode={'y' * 5000}"], "There is no mode"),
        (["mode=any:99"], "has 99 players"),
        (["rules=\x1b[2Jolder"], "There is no rule set"),
        (["mode=five", "nomination_rounds=0"], "it must be from 1 to 20"),
        (["mode=five", "names=Ann,Bob"], "There are 2 names for 5 players"),
        (["mode=five", "names=Ann,\u0410nn,Bob,Cid,Eve"], "look alike"),
        (["mode=five", "names=system,Ann,Bob,Cid,Eve"], "stands for something else"),
        (["mode=five", "names=Doctor,Ann,Bob,Cid,Eve"], "stands for something else"),
        (["mode=five", "names=\x1b[31mAnn,Bob,Cid,Dora,Eve"], "not plain text"),
        (["mode=five", f"names={'x' * 10_000},Bob,Cid,Dora,Eve"], "at most 30"),
        (["wathc=all"], "Did you mean watch?"),
    ],
)
def test_an_option_that_cannot_be_is_told_in_one_line(
    options: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    given = [word for option in options for word in ("--option", option)]
    assert run(["play", "tossim", "--json", "--steps", "1", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    (line,) = err.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    assert len(line) < 600
    assert run(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [], "nothing was recorded"


def test_a_game_is_not_gone_on_with_under_other_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    assert run(["play", "tossim", "--json", "--steps", "1", "--option", "mode=five"]) == 0
    capsys.readouterr()
    assert run(["play", "--json", "--resume", "last", "--option", "rules=older"]) == 2
    assert capsys.readouterr().err == ("Error: --resume continues a run as it was started; leave out --option.\n")
