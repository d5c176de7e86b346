"""What is thought of others follows from claims, wills and deaths, and from nothing that one can't know."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_tossim.players.reading.beliefs import believe
from wsap_tossim.players.reading.notes import Notes

LIST = ("Jailor", "Investigator", "Sheriff", "Doctor", "Lookout", "Escort", "Godfather", "Mafioso", "Framer")
"""Each role once: six of the Town, three of the Mafia."""


@pytest.fixture
def told(story: Any) -> Any:
    """A Lookout's story, Ann's, in a game of nine."""
    return story(0, "Lookout", LIST)


def test_before_anything_is_known_all_are_alike_and_add_up_to_the_role_list(told: Any) -> None:
    beliefs = told.beliefs()
    assert set(beliefs) == {"Bo", "Cy", "Dana", "Eve", "Finn", "Gus", "Hal", "Ivy"}
    assert sum(beliefs.values()) == pytest.approx(3, abs=0.05)
    assert max(beliefs.values()) - min(beliefs.values()) < 0.01


def test_a_claim_contradicted_by_a_revealed_will_raises_suspicion(story: Any) -> None:
    def after(found: str) -> float:
        told = story(0, "Lookout", LIST)
        told.dies_at_night("Cy", "Investigator", f"Investigator.\nN1: investigated Bo: {found}.")
        told.says("Bo", "I'm the Doctor.")
        return float(told.beliefs()["Bo"])

    borne_out, contradicted = after("Doctor, Disguiser or Serial Killer"), after("Framer, Vampire or Jester")
    assert contradicted > 0.6
    assert borne_out < 0.3


def test_a_claim_of_a_role_whose_only_holder_is_dead_raises_suspicion(told: Any) -> None:
    told.says("Bo", "I'm the Doctor.")
    before = told.beliefs()["Bo"]
    told.dies_at_night("Cy", "Doctor")
    assert told.beliefs()["Bo"] > before + 0.25


def test_two_claims_of_a_role_that_there_is_once_make_both_suspicious(told: Any) -> None:
    told.says("Bo", "I'm the Sheriff.")
    one = told.beliefs()
    told.says("Cy", "No, I am the Sheriff!")
    two = told.beliefs()
    assert two["Bo"] > one["Bo"] + 0.1
    assert two["Cy"] > two["Dana"]


def test_who_claims_my_own_unique_role_is_a_liar(told: Any) -> None:
    told.says("Bo", "I'm the Lookout.")
    assert told.beliefs()["Bo"] > 0.9


def test_a_claim_of_a_role_that_is_not_in_the_list_raises_suspicion(told: Any) -> None:
    told.says("Bo", "I'm the Transporter.")
    assert told.beliefs()["Bo"] > 0.7


def test_changing_a_claim_raises_suspicion(told: Any) -> None:
    told.says("Bo", "I'm the Doctor.").says("Cy", "I'm the Escort.")
    told.says("Bo", "I'm the Sheriff.")
    beliefs = told.beliefs()
    assert beliefs["Bo"] > beliefs["Cy"] + 0.1


def test_the_will_of_a_dead_sheriff_is_believed(told: Any) -> None:
    told.dies_at_night("Cy", "Sheriff", "Sheriff.\nN1: interrogated Bo: suspicious.")
    assert told.beliefs()["Bo"] > 0.7


def test_the_will_of_a_dead_mafioso_is_not(told: Any) -> None:
    told.dies_at_night("Cy", "Mafioso", "Sheriff.\nN1: interrogated Bo: suspicious.")
    assert told.beliefs()["Bo"] < 0.35


def test_a_finding_counts_less_from_one_who_is_doubted(story: Any) -> None:
    def after(liar: bool) -> float:
        told = story(0, "Lookout", LIST)
        if liar:
            told.says("Cy", "I'm the Lookout.")  # which Ann knows to be a lie
        told.says("Cy", "N1: interrogated Bo: suspicious.")
        beliefs = told.beliefs()
        return float(beliefs["Bo"] - beliefs["Dana"])

    assert after(liar=False) > 0.1
    assert after(liar=True) <= 0.02


def test_who_called_a_townsman_suspicious_loses_trust_and_who_called_a_mafioso_so_gains_it(story: Any) -> None:
    def after(role: str) -> float:
        told = story(0, "Lookout", LIST)
        told.says("Cy", "N1: interrogated Bo: suspicious.").dies_at_night("Bo", role)
        beliefs = told.beliefs()
        return float(beliefs["Cy"] - beliefs["Dana"])

    assert after("Escort") > 0.05
    assert after("Mafioso") < -0.15


def test_a_lookout_suspects_whom_it_saw_at_the_door_of_the_dead(told: Any) -> None:
    told.dies_at_night("Cy", "Doctor")
    told.finds(verb="watch", target=2, visitors=[1])
    assert told.beliefs()["Bo"] > 0.8


def test_mates_are_known_and_a_consigliere_knows_whom_it_looked_at(story: Any) -> None:
    told = story(0, "Consigliere", (*LIST[:-1], "Consigliere"), mates={"1": "Godfather", "2": "Mafioso"})
    told.dies_at_night("Ivy", "Jailor").finds(verb="consult", target=3, role="Doctor")
    beliefs = told.beliefs()
    assert (beliefs["Bo"], beliefs["Cy"], beliefs["Dana"]) == (0.99, 0.99, pytest.approx(0.01))


def test_a_whisper_is_no_public_claim(told: Any) -> None:
    told.see("whisper", player=1, to=0, text="I'm the Lookout.")
    beliefs = told.beliefs()
    assert beliefs["Bo"] == pytest.approx(beliefs["Cy"], abs=0.02)


def test_who_says_it_was_where_nobody_saw_it_is_doubted(story: Any) -> None:
    """Ann watched Cy's house: Bo, who claims to have healed Cy that night, was not there; Dana was."""
    told = story(0, "Lookout", LIST)
    told.dies_at_night("Hal", "Jailor")
    told.finds(verb="watch", target=2, visitors=[3])
    told.says("Bo", "I'm the Doctor. N1: healed Cy.").says("Dana", "I'm the Escort. N1: blocked Cy.")
    beliefs = told.beliefs()
    assert beliefs["Bo"] > beliefs["Dana"] + 0.2


def test_to_have_looked_twice_makes_a_finding_no_truer(story: Any) -> None:
    def after(times: int) -> float:
        told = story(0, "Lookout", LIST)
        for night in range(1, times + 1):
            told.says("Cy", f"N{night}: interrogated Bo: suspicious.")
        return float(told.beliefs()["Bo"])

    assert after(3) == pytest.approx(after(1), abs=0.01)


def test_a_role_told_in_a_whisper_gains_a_little_trust_of_who_hears_it_alone(story: Any) -> None:
    told = story(0, "Escort", LIST)
    told.see("whisper", player=1, to=0, text="I trust you. I'm the Sheriff.")
    beliefs = told.beliefs()
    assert beliefs["Bo"] < beliefs["Cy"]


def test_what_was_heard_in_secret_is_no_part_of_what_everybody_thinks(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Spy", ("Spy", *LIST[1:]))
    told.see("whisper", player=1, to=2, text="N1: interrogated Dana: suspicious.")
    notes = Notes(0, names[:9]).update(told.knowledge)
    public = believe(notes, told.knowledge, public=True)
    assert public.of(3) == pytest.approx(public.of(4), abs=0.001)
    own = believe(notes, told.knowledge)
    assert own.of(3) > own.of(4)


def test_what_is_believed_is_thought_of_again_after_each_thing_that_bears_on_it(
    story: Any, names: tuple[str, ...]
) -> None:
    """Notes that were asked after every event say the same as notes of all events at once."""
    told = story(0, "Sheriff", ("Sheriff", "Doctor", "Lookout", "Escort", "Mayor", "Godfather", "Mafioso"))
    steps = (
        lambda: told.says("Bo", "I'm the Doctor."),
        lambda: told.says("Cy", "I'm the Doctor."),
        lambda: told.says("Bo", "I'm the Escort."),
        lambda: told.says("Bo", "I'm the Doctor."),
        lambda: told.says("Dana", "I'm the Lookout. N1: watched Eve: visited by Cy."),
        lambda: told.dies_at_night("Eve", "Escort"),
        lambda: told.finds(verb="interrogate", target=2, suspicious=True),
        lambda: told.see("revealed", player=5),
    )
    often = Notes(0, names[:7])
    for step in steps:
        step()
        for public in (False, True):
            now = believe(often.update(told.knowledge), told.knowledge, public=public).enemy
            once = believe(Notes(0, names[:7]).update(told.knowledge), told.knowledge, public=public).enemy
            assert now == once
