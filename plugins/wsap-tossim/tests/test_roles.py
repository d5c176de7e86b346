"""The roles as data, against the table of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Attack, Defense, Faction
from wsap_tossim.engine.data.rules import CLASSIC, RULE_SETS
from wsap_tossim.engine.roles.listed import ROLES, role_named
from wsap_tossim.perception.description import role_sheet

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "tossim-rules.md"
STRENGTHS = {"–": 0, "basic": 1, "powerful": 2, "unstoppable": 3}


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading of the reference."""
    text = REFERENCE.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def test_there_are_thirty_three_roles_and_the_citizen():
    assert len(ROLES) == 34
    assert {f.value: sum(r.faction is f for r in ROLES.values()) for f in Faction} == {
        "Town": 16, "Mafia": 9, "Neutral": 8, "Vampires": 1,
    }  # fmt: skip


def test_the_roles_are_those_of_the_reference():
    rows = table("Roles")
    assert [row[0].removesuffix(", unique") for row in rows] != []
    assert {row[0].removesuffix(", unique") for row in rows} == set(ROLES)
    for name, side, kind, attack, defense, *_ in rows:
        role = ROLES[name.removesuffix(", unique")]
        assert role.unique is name.endswith(", unique"), name
        assert role.faction.value == side, name
        assert (role.category.value.split(" ", 1)[1] if role.category else "none; in teaching set-ups") == kind, name
        assert role.attack is Attack(STRENGTHS[attack]), name
        assert role.defense is Defense(STRENGTHS[defense.split(" ")[0].rstrip(",")]), name


def test_the_immune_are_those_of_the_reference():
    assert {r.name for r in ROLES.values() if r.immune_to_block} == {
        "Escort", "Consort", "Transporter", "Veteran", "Witch",
    }  # fmt: skip
    assert {r.name for r in ROLES.values() if r.immune_to_control} == {"Transporter", "Veteran", "Witch"}


@pytest.mark.parametrize("name", list(ROLES))
def test_every_role_says_what_it_is_in_short(name):
    role = ROLES[name]
    assert role.name == name
    for rules in RULE_SETS.values():
        lines = role_sheet(role, rules).splitlines()
        for text in (line.removeprefix("- ").removeprefix("Goal: ") for line in lines):
            assert text.endswith(".")
            assert text[0].isupper()
            assert len(text) <= 260
        assert len(lines) > 2
        assert sum(map(len, lines)) < 1000


@pytest.mark.parametrize("text", ["Serial Killer", "serial killer", "SERIAL_KILLER", "serial-killer", " serialkiller "])
def test_a_role_is_found_whatever_the_case(text):
    assert role_named(text).name == "Serial Killer"


@pytest.mark.parametrize(("text", "guess"), [("sherif", "Sheriff"), ("serial kiler", "Serial Killer"), ("mafia", "")])
def test_an_unknown_role_is_refused_with_a_guess(text, guess):
    with pytest.raises(ConfigError, match=f"did you mean {guess}\\?" if guess else "no role"):
        role_named(text)


def test_an_unknown_role_may_be_long_or_odd():
    for text in ("", "x" * 10**6, "\x1b[2J", "{0}"):
        with pytest.raises(ConfigError) as caught:
            role_named(text)
        assert len(str(caught.value)) < 700


def test_every_switch_is_in_the_reference_with_its_default():
    words = {True: "yes", False: "no"}
    told = {row[0].strip("`"): row[1].strip("`") for row in table("Switches")}
    rules = {k: v for k, v in CLASSIC.to_json().items() if k not in ("name", "version")}
    assert told == {k: words[v] if isinstance(v, bool) else str(v) for k, v in rules.items()}


def test_what_the_older_rules_change_is_marked_in_the_reference():
    marked = {row[0].strip("`") for row in table("Switches") if "`older`" in row[2]}
    older, classic = RULE_SETS["older"].to_json(), CLASSIC.to_json()
    assert marked == {k for k in classic if older[k] != classic[k]} - {"name", "version"}
