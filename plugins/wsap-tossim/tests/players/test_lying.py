"""Those who lie keep to what can't well be found out, and go together where they are many."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_tossim.engine.data.model import Option, Verb
from wsap_tossim.players.coordination import common_target
from wsap_tossim.players.reading.notes import Notes
from wsap_tossim.players.reading.stories import cover_role, jester_manner, nights_of, told_as
from wsap_tossim.players.reading.view import Character, View
from wsap_tossim.players.scripted import ScriptedDecider

VAMPIRES = ("Vampire Hunter", "Investigator", "Sheriff", "Doctor", "Escort", "Lookout", "Vampire", "Vampire", "Jester")
MAFIA = ("Sheriff", "Doctor", "Lookout", "Escort", "Medium", "Citizen", "Godfather", "Mafioso", "Framer")


def notes_of(told: Any, names: tuple[str, ...]) -> Notes:
    return Notes(told.knowledge.player, names[: told.knowledge.players]).update(told.knowledge)


def test_one_who_was_bitten_goes_on_telling_the_truth_about_what_it_was(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Sheriff", VAMPIRES)
    told.phase = "night"
    told.see("phase", name="night")
    told.see("becomes", player=0, role="Vampire", why="conversion")
    told.day = 2
    told.finds(verb="interrogate", target=1, suspicious=False)
    told.phase = "discussion"
    told.see("phase", name="discussion")
    notes = notes_of(told, names)
    assert told_as(told.knowledge, notes, 1) == "Sheriff"
    assert nights_of(told.knowledge, notes, "Sheriff", 1) == {1: "interrogated Bo: not suspicious"}


def test_a_vampire_from_the_start_never_poses_as_the_one_who_hunts_it(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Vampire", VAMPIRES, mates={"1": "Vampire"})
    notes = notes_of(told, names)
    assert "Vampire Hunter" not in {cover_role(told.knowledge, notes, seed) for seed in range(60)}


def test_vampires_do_not_bite_the_hunter_nor_one_another(story: Any, names: tuple[str, ...]) -> None:
    for day in range(1, 8):
        told = story(0, "Vampire", VAMPIRES, mates={"1": "Vampire"})
        told.says("Cy", "I'm the Vampire Hunter.")
        told.day = day
        told.see("phase", name="night")
        view = View(told.knowledge, notes_of(told, names), (), 1, Character(1))
        assert common_target(view) not in (None, 0, 1, 2)


def test_a_victim_that_was_in_vain_is_not_gone_for_again_by_whoever_heard_of_it(
    story: Any, names: tuple[str, ...]
) -> None:
    chosen = []
    for heard in ("", "Dana tonight."):
        told = story(0, "Vampire", VAMPIRES, mates={"1": "Vampire"})
        told.says("Dana", "I'm the Escort.")
        told.phase = "night"
        if heard:
            told.see("said", channel="vampires", player=1, text=heard)
        told.day = 2
        told.see("phase", name="discussion")
        told.phase = "night"
        told.see("phase", name="night")
        view = View(told.knowledge, notes_of(told, names), (), 1, Character(1))
        chosen.append(common_target(view, [3, 4]))
    assert chosen[1] == 4


def test_mates_do_not_take_the_same_cover(story: Any, names: tuple[str, ...]) -> None:
    roles = {0: "Godfather", 1: "Mafioso", 2: "Framer"}
    same = 0
    for seed in range(30):
        covers = []
        for player, role in roles.items():
            mates = {str(n): r for n, r in roles.items() if n != player}
            told = story(player, role, MAFIA, mates=mates)
            covers.append(cover_role(told.knowledge, notes_of(told, names), seed * 7 + player))
        same += len(set(covers)) < 3
    assert same <= 12


def test_a_cover_is_a_role_that_nobody_else_has_claimed_where_there_is_one(story: Any, names: tuple[str, ...]) -> None:
    told = story(0, "Godfather", MAFIA, mates={"1": "Mafioso", "2": "Framer"})
    told.says("Dana", "I'm the Doctor.").says("Eve", "I'm the Escort.").dies_at_night("Finn", "Lookout")
    covers = {cover_role(told.knowledge, notes_of(told, names), seed) for seed in range(60)}
    assert covers <= {"Sheriff", "Medium", "Citizen"}


@pytest.mark.parametrize("role", ["Vampire", "Mafioso"])
def test_a_side_that_is_half_of_the_town_judges_openly(story: Any, names: tuple[str, ...], role: str) -> None:
    """Two of four: Ann and her mate Bo against Cy and Dana."""
    for accused, verdict in (("Cy", "guilty"), ("Bo", "innocent")):
        told = story(0, role, ("Sheriff", "Doctor", "Escort", "Lookout", role, role), mates={"1": role})
        told.dies_at_night("Eve", "Escort").dies_at_night("Finn", "Lookout")
        told.see("trial", player=names.index(accused), number=1)
        told.phase = "judgement"
        told.see("phase", name="judgement")
        mind = ScriptedDecider(0, None, names[:6], seed=1)
        options = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), Option(Verb.WAIT))
        assert mind.turn(told.knowledge, options).choice.verb == verdict


def test_jesters_go_about_it_in_three_ways(story: Any, names: tuple[str, ...]) -> None:
    assert {jester_manner(seed) for seed in range(9)} == {"mute", "liar", "accuser"}
    told = story(0, "Jester", (*MAFIA[:-1], "Jester")).says("Bo", "I'm the Medium.")
    notes = notes_of(told, names)
    liar, accuser = (next(s for s in range(9) if jester_manner(s) == way) for way in ("liar", "accuser"))
    assert told_as(told.knowledge, notes, liar) == "Medium"
    assert told_as(told.knowledge, notes, accuser) == "Sheriff"


def test_a_place_that_somebody_else_may_have_is_no_better_than_one_of_its_own(
    story: Any, names: tuple[str, ...]
) -> None:
    """The only free place for a town role at random is claimed; a named role is not, and can still be open."""
    slots = ("Investigator", "Sheriff", "Doctor", "Lookout", "Random Town", "Godfather", "Mafioso")
    named = {"Sheriff", "Doctor", "Lookout", "Investigator"}
    shares = []
    for claim in ("", "I'm the Escort."):
        taken = 0
        for seed in range(80):
            told = story(0, "Mafioso", slots, mates={"1": "Godfather"})
            if claim:
                told.says("Cy", claim)
            taken += cover_role(told.knowledge, notes_of(told, names), seed) in named
        shares.append(taken)
    assert shares[1] > shares[0]
    assert shares[1] > 40  # of 80: most


@pytest.mark.parametrize(("dead", "verdict"), [(("Eve", "Finn", "Hal"), "guilty"), ((), "innocent")])
def test_the_mafia_condemns_anybody_once_one_more_lynching_would_do(
    story: Any, names: tuple[str, ...], dead: tuple[str, ...], verdict: str
) -> None:
    """Two of six, and then of four with one more lynched and one more killed: half. Two of nine are not so near."""
    slots = ("Sheriff", "Doctor", "Escort", "Lookout", *("Citizen",) * 4, "Mafioso", "Mafioso")
    told = story(0, "Mafioso", slots, mates={"1": "Mafioso"})
    told.says("Cy", "I'm the Doctor.")
    told.dies_at_night("Gus", "Sheriff", "Sheriff.\nN1: interrogated Cy: not suspicious.")
    for name in dead:
        told.dies_at_night(name, "Citizen")
    told.day = 3
    told.see("trial", player=names.index("Cy"), number=1)
    told.phase = "judgement"
    told.see("phase", name="judgement")
    options = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), Option(Verb.WAIT))
    verdicts = [
        ScriptedDecider(0, None, names[:10], seed=seed).turn(told.knowledge, options).choice.verb for seed in range(12)
    ]
    assert set(verdicts) == {verdict} if dead else verdict in verdicts
