"""Claims are counted against the open places of the role list."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_tossim.players.reading.counting import SILENT, Standing, claim_of, count_claims

LIST = ("Jailor", "Town Investigative", "Town Investigative", "Doctor", "Random Town", "Godfather", "Mafioso")


def counted(slots: tuple[str, ...], gone: list[str], claims: list[str]) -> dict[str, Standing]:
    rest = len(slots) - len(gone) - len(claims)
    assert rest >= 0
    return dict(count_claims(slots, tuple(sorted(gone)), tuple(sorted([*claims, *[SILENT] * rest]))))


def test_where_nobody_has_claimed_all_are_what_the_list_says() -> None:
    """Two of seven are of the Mafia."""
    assert counted(LIST, [], [])[SILENT].enemy == pytest.approx(2 / 7, abs=0.02)


def test_of_two_mayors_one_lies() -> None:
    slots = (*LIST, "Random Town", "Random Town")
    found = counted(slots, [], ["Mayor", "Mayor"])
    assert found["Mayor"].enemy == pytest.approx(0.5, abs=0.03)


def test_more_investigators_than_places_for_them_are_doubted_and_others_are_not() -> None:
    """Three places can hold them: two of their kind and a random one. Four claim it, each of another role."""
    four = ["Sheriff", "Lookout", "Investigator", "Spy"]
    found = counted(LIST, [], [*four, "Doctor"])
    few = counted(LIST, [], [*four[:2], "Doctor"])
    assert min(found[claim].enemy for claim in four) > few["Sheriff"].enemy + 0.05
    assert min(found[claim].enemy for claim in four) > found["Doctor"].enemy + 0.1


def test_a_place_is_closed_by_the_death_of_who_had_it() -> None:
    open_, closed = counted(LIST, [], ["Doctor"]), counted(LIST, ["Doctor"], ["Doctor"])
    assert closed["Doctor"].enemy > open_["Doctor"].enemy + 0.2


def test_the_dead_take_the_narrowest_place_first() -> None:
    """One dead Sheriff leaves one place of its kind to a Lookout; two of them leave none but the random one."""
    claims = ["Lookout", "Jailor", "Doctor"]
    one, two = counted(LIST, ["Sheriff"], claims), counted(LIST, ["Sheriff", "Sheriff"], claims)
    assert two["Lookout"].enemy > one["Lookout"].enemy + 0.1
    assert two["Doctor"].enemy == pytest.approx(one["Doctor"].enemy, abs=0.05)


def test_a_role_that_the_list_cannot_hold_is_a_lie() -> None:
    slots = ("Sheriff", "Doctor", "Citizen", "Citizen", "Mafioso")
    assert counted(slots, [], ["Lookout"])["Lookout"].enemy > 0.95


def test_an_executioner_is_thought_of_where_somebody_claims_to_have_found_things() -> None:
    slots = (*LIST, "Executioner")
    found = counted(slots, ["Sheriff"], ["Sheriff", "Doctor"])
    assert found["Sheriff"].executioner > 0.2
    assert found["Doctor"].executioner < 0.1
    assert counted(LIST, ["Sheriff"], ["Sheriff"])["Sheriff"].executioner == 0.0


def test_a_hunter_who_has_run_out_of_prey_has_not_changed_its_claim() -> None:
    assert claim_of(["Vampire Hunter", "Vigilante"]) == "Vampire Hunter"
    assert claim_of(["Doctor", "Vigilante"]) == "Vigilante"
    assert claim_of(None) == SILENT


def test_what_is_counted_is_what_a_player_thinks(story: Any) -> None:
    """Ann, an Escort, hears four claims for three places, and a Doctor whom nothing contradicts."""
    told = story(0, "Escort", LIST)
    for name, role in (("Bo", "Sheriff"), ("Cy", "Lookout"), ("Dana", "Investigator"), ("Eve", "Spy")):
        told.says(name, f"I'm the {role}.")
    told.says("Finn", "I'm the Doctor.")
    beliefs = told.beliefs()
    assert min(beliefs[name] for name in ("Bo", "Cy", "Dana", "Eve")) > beliefs["Finn"] + 0.1
