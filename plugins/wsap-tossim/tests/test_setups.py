"""Role lists, modes and rule sets: what can be played, what can't, and why."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Faction
from wsap_tossim.engine.data.rules import RULE_SETS, RuleSet, rule_set
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.setups import MODES, deal, setup
from wsap_tossim.names import checked_names
from wsap_tossim.options import TownOptions
from wsap_tossim.plugin import wsap_adapters

(TOWN,) = wsap_adapters()


def test_there_are_modes_from_five_to_fifteen_players() -> None:
    sizes = {len(slots) for slots in MODES.values()}

    assert {5, 7, 9, 12, 15} <= sizes
    assert all(5 <= size <= 15 for size in sizes)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_every_mode_deals_a_role_to_each_and_two_sides_at_least(mode: str) -> None:
    for seed in range(20):
        roles = deal(setup(mode), seed)

        assert len(roles) == len(MODES[mode])
        if not setup(mode).teaching:
            counts = Counter(r.name for r in roles if r.unique)
            assert all(count == 1 for count in counts.values())
        named = Counter(slot for slot in MODES[mode] if slot in ROLES)
        assert not named - Counter(r.name for r in roles)


def test_a_slot_is_filled_by_a_role_of_its_kind() -> None:
    chosen = setup(roles="Godfather, Town Support, Town Protective, Random Mafia, Neutral Killing, Random Town")
    for seed in range(50):
        roles = deal(chosen, seed)
        kinds = Counter(str(r.category) for r in roles)
        assert kinds["Town Support"] >= 1
        assert kinds["Town Protective"] >= 1
        assert kinds["Neutral Killing"] == 1
        assert sum(r.faction is Faction.MAFIA for r in roles) == 2
        assert sum(r.faction is Faction.TOWN for r in roles) == 3


def test_roles_are_dealt_to_all_seats_alike() -> None:
    chosen = setup("five")
    where = Counter(next(i for i, r in enumerate(deal(chosen, seed)) if r.name == "Mafioso") for seed in range(1000))

    # 200 are expected of each seat; 4 standard deviations are 51.
    assert all(149 < where[seat] < 251 for seat in range(5))


@pytest.mark.parametrize(
    ("roles", "rule"),
    [
        ("Sheriff, Doctor, Mafioso, Citizen", "has 4 players; a game has 5 to 15"),
        (", ".join(["Citizen"] * 15 + ["Mafioso"]), "has 16 players"),
        ("Jailor, Jailor, Mafioso, Citizen, Citizen", "more than one Jailor, which is unique"),
        ("Sheriff, Doctor, Citizen, Citizen, Citizen", "Town has no enemy"),
        ("Mafioso, Godfather, Framer, Janitor, Random Mafia", "Mafia has no enemy"),
        ("Survivor, Jester, Executioner, Witch, Amnesiac", "nobody is on a side"),
        ("Any, Jester, Amnesiac, Executioner, Survivor", "only one player can be on a side"),
        ("Sheriff, Doctor, Mafioso, Citizen, Town Suport", "did you mean Town Support?"),
        ("Sheriff, Doctor, , Citizen, Mafioso", "Slot 3 of the role list is empty"),
        ("Sheriff, Doctor, Citizen, Citizen, Random Town", "Town has no enemy"),
        ("Mafia Killing, Mafia Killing, Mafia Killing, Citizen, Citizen", "more unique roles than there are"),
        ("Sherif, Doctor, Mafioso, Citizen, Citizen", "did you mean Sheriff?"),
        ("Sheriff, Doctor, Mafioso, Citizen, <script>", "There is no role '<script>'"),
    ],
)
def test_a_list_that_cannot_be_played_says_which_rule_it_breaks(roles: str, rule: str) -> None:
    with pytest.raises(ConfigError) as refused:
        setup(roles=roles)

    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mode", ["nope", "any:4", "any:16", "any:x", "any", "lesson:7", "lesson:5:0", "lesson:5:5"])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    if mode == "any":
        assert len(setup(mode).slots) == 15
        return
    with pytest.raises(ConfigError):
        setup(mode)


def test_numbered_modes() -> None:
    assert setup("any:9").slots == ("Any",) * 9
    assert Counter(setup("lesson:7:2").slots) == {"Citizen": 5, "Mafioso": 2}
    assert TOWN.with_options({"mode": "any:9"}).seats == (9, 9)
    assert TOWN.with_options({"roles": "Sheriff, Doctor, Mafioso, Citizen, Citizen"}).seats == (5, 5)


def test_switches_are_checked() -> None:
    assert rule_set("classic", {"parity": True}).parity
    assert rule_set("classic", {"parity": True}).name == "classic+"
    assert rule_set("classic", {}) is RULE_SETS["classic"]
    for switches, why in (
        ({"paritee": True}, "There is no rule 'paritee'"),
        ({"parity": 1}, "must be yes or no"),
        ({"trials_a_day": "3"}, "must be a whole number"),
        ({"trials_a_day": True}, "must be a whole number"),
        ({"trials_a_day": 0}, "it must be from 1 to 15"),
        ({"first_day": "never"}, "it must be 'talk' or 'vote' or 'none'"),
    ):
        with pytest.raises(ConfigError) as refused:
            rule_set("classic", switches)
        assert why in str(refused.value)
    with pytest.raises(ConfigError, match="There is no rule set"):
        rule_set("modern")


@pytest.mark.parametrize("name", sorted(RULE_SETS))
def test_rule_sets_are_written_down_whole(name: str) -> None:
    assert RuleSet.from_json(RULE_SETS[name].to_json()) == RULE_SETS[name]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["Ann", "ann", "Cy", "Di", "Ed"], "look alike"),
        (["Ann", "Аnn", "Cy", "Di", "Ed"], "look alike"),
        (["Corn", "Com", "Cy", "Di", "Ed"], "look alike"),
        (["Il", "ll", "Cy", "Di", "Ed"], "look alike"),
        (["System", "Bo", "Cy", "Di", "Ed"], "stands for something else"),
        (["sуstem", "Bo", "Cy", "Di", "Ed"], "stands for something else"),
        (["Mafia", "Bo", "Cy", "Di", "Ed"], "stands for something else"),
        (["", "Bo", "Cy", "Di", "Ed"], "no letters"),
        (["!!!", "Bo", "Cy", "Di", "Ed"], "no letters"),
        (["A" * 31, "Bo", "Cy", "Di", "Ed"], "at most 30"),
        (["<speak>", "Bo", "Cy", "Di", "Ed"], "not plain text"),
        (["Ann|Bo", "Bo", "Cy", "Di", "Ed"], "not plain text"),
        (["Ann\nBo", "Bo", "Cy", "Di", "Ed"], "not plain text"),
        (["Ann\u202e", "Bo", "Cy", "Di", "Ed"], "not plain text"),
        (["Ann", "Bo", "Cy", "Di"], "4 names for 5 players"),
    ],
)
def test_names_that_could_be_mistaken_are_refused(names: list[str], why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        checked_names(names, 5)

    assert why in str(refused.value)


def test_names_that_can_be_told_apart_are_taken() -> None:
    names = tuple(f"Player {i}" for i in range(1, 16))

    assert checked_names(names, 15) == names
    assert checked_names(["Zoë", "Łukasz", "Мария", "小明", "O'Neil"], 5)[2] == "Мария"


def test_options_are_read_together() -> None:
    options = TownOptions.read({"mode": "five", "rules": "quick", "names": "Ann,Bo,Cy,Di,Ed", "deathless_days": 5})

    assert options.names == ("Ann", "Bo", "Cy", "Di", "Ed")
    assert options.rules.deathless_days == 5
    assert options.rules.name == "quick+"


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*ROLES, "Any", "Random Town", "Random Neutral"]), min_size=1, max_size=17))
def test_a_list_that_is_taken_can_be_dealt(roles: list[str]) -> None:
    chosen = None
    with contextlib.suppress(ConfigError):
        chosen = setup(roles=roles)
    if chosen is not None:
        dealt = deal(chosen, 1)
        assert len(dealt) == len(roles)
        assert Counter(s for s in roles if s in ROLES) <= Counter(r.name for r in dealt)
