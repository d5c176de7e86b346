"""The Town is not made use of: by a Jester who wants to hang, or by an Executioner who wants another to."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_tossim.engine.data.model import Option, Verb
from wsap_tossim.players.lynch_risk import caution, jesters_left
from wsap_tossim.players.reading.notes import Notes
from wsap_tossim.players.reading.view import Character, View
from wsap_tossim.players.scripted import ScriptedDecider

NINE = ("Jailor", "Investigator", "Sheriff", "Doctor", "Lookout", "Escort", "Godfather", "Mafioso")
JUDGE = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), Option(Verb.WAIT))


def seen(told: Any, names: tuple[str, ...]) -> View:
    mine = told.knowledge.player
    names = names[: told.knowledge.players]
    return View(told.knowledge, Notes(mine, names).update(told.knowledge), (), 1, Character(1))


def judged(told: Any, names: tuple[str, ...], accused: str, seed: int = 1) -> str:
    """Return how the player judges somebody who is on trial now."""
    told.see("trial", player=names.index(accused), number=1)
    told.phase = "judgement"
    told.see("phase", name="judgement")
    mind = ScriptedDecider(told.knowledge.player, None, names[: told.knowledge.players], seed=seed)
    return str(mind.turn(told.knowledge, JUDGE).choice.verb)


@pytest.fixture
def with_jester(story: Any) -> Any:
    return story(0, "Escort", (*NINE, "Jester")).dies_at_night("Ivy", "Doctor")


def test_one_who_says_nothing_for_itself_may_be_a_jester(with_jester: Any, names: tuple[str, ...]) -> None:
    """Bo spoke for a mafioso, and will not say who he is."""
    with_jester.says("Bo", "I trust Cy: he is fine.").dies_at_night("Cy", "Mafioso")
    assert seen(with_jester, names).own.of(1) > seen(with_jester, names).mean
    assert caution(seen(with_jester, names), 1) > 0.4
    assert judged(with_jester, names, "Bo") != "guilty"


def test_where_the_list_has_no_jester_silence_does_not_help(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Escort", (*NINE, "Survivor")).dies_at_night("Ivy", "Doctor")
    told.says("Bo", "I trust Cy: he is fine.").dies_at_night("Cy", "Mafioso")
    assert caution(seen(told, names), 1) == 0.0
    assert judged(told, names, "Bo") == "guilty"


def test_a_jester_in_the_graveyard_is_feared_no_more(with_jester: Any, names: tuple[str, ...]) -> None:
    assert jesters_left(seen(with_jester, names)) == 1.0
    with_jester.dies_at_night("Hal", "Jester")
    assert jesters_left(seen(with_jester, names)) == 0.0


def test_what_a_dead_sheriff_left_behind_is_enough_even_against_the_silent(
    with_jester: Any, names: tuple[str, ...]
) -> None:
    with_jester.dies_at_night("Cy", "Sheriff", "Sheriff.\nN1: interrogated Bo: suspicious.")
    assert caution(seen(with_jester, names), 1) == 0.0
    assert judged(with_jester, names, "Bo") == "guilty"


def test_one_accuser_of_a_player_whose_claim_stands_is_weighed_again(story: Any, names: tuple[str, ...]) -> None:
    def after(second: bool) -> float:
        told = story(0, "Escort", (*NINE, "Executioner")).dies_at_night("Ivy", "Doctor")
        told.says("Bo", "I'm the Lookout.").says("Cy", "I'm the Sheriff. N1: interrogated Bo: suspicious.")
        if second:
            told.says("Dana", "I'm the Investigator. N1: investigated Bo: Bodyguard, Godfather or Arsonist.")
        return caution(seen(told, names), 1)

    assert after(second=False) > 0.2
    assert after(second=True) == 0.0


def test_who_accuses_counts_less_where_an_executioner_may_speak(story: Any) -> None:
    def after(last: str) -> float:
        told = story(0, "Escort", (*NINE, last)).dies_at_night("Ivy", "Doctor")
        told.says("Bo", "I'm the Lookout.").says("Cy", "I'm the Sheriff. N1: interrogated Bo: suspicious.")
        beliefs = told.beliefs()
        return float(beliefs["Bo"] - beliefs["Dana"])

    assert after("Survivor") > after("Executioner") + 0.01


def test_the_accuser_of_one_who_turns_out_to_be_of_the_town_is_suspected_next(story: Any) -> None:
    told = story(0, "Escort", (*NINE, "Framer")).dies_at_night("Ivy", "Doctor")
    told.says("Cy", "I'm the Sheriff. N1: interrogated Bo: suspicious.")
    before = told.beliefs()["Cy"]
    told.see("death", player=1, causes=["lynching"], role="Lookout", when="day")
    beliefs = told.beliefs()
    assert beliefs["Cy"] > before
    assert beliefs["Cy"] == max(beliefs.values())


def test_an_accuser_whose_victim_died_at_night_may_want_to_hang_by_now(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Escort", (*NINE, "Executioner"))
    told.says("Cy", "I'm the Sheriff. N1: interrogated Bo: suspicious.").dies_at_night("Bo", "Lookout")
    assert caution(seen(told, names), 2) > 0.4


def test_an_investigators_group_with_the_jester_in_it_is_no_proof(story: Any, names: tuple[str, ...]) -> None:
    def after(last: str) -> float:
        told = story(0, "Escort", (*NINE[:-1], "Framer", last)).dies_at_night("Ivy", "Doctor")
        told.says("Bo", "I'm the Lookout.").says("Cy", "N1: investigated Bo: Framer, Vampire or Jester.")
        return caution(seen(told, names), 1)

    assert after("Jester") > after("Survivor") + 0.1
