"""The hidden trace of a night, which a replay shows step by step; death notes; and what little is left."""

from __future__ import annotations

import pytest

from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.night.resolution import resolve_night


def trace(t, *kinds):
    """Return the last events of some kinds, with names for numbers."""
    people = ("player", "target", "victim", "onto", "member")
    return [
        (e.kind, {k: t.names[v] if k in people and v is not None else v for k, v in e.data.items()})
        for e in t.events
        if e.kind in kinds
    ]


def test_the_trace_has_the_steps_in_their_order(town):
    t = town(tr="Transporter", w="Witch", e="Escort", doc="Doctor", f="Framer", m="Mafioso", cop="Sheriff",
             v="Vigilante", x="Citizen", y="Citizen")  # fmt: skip
    t.night(
        tr="transport x y", w="control v m", e="block cop", doc="heal x", f="frame e", m="kill x", cop="interrogate m"
    )
    hidden = ("moves", "controls", "blocks", "visits", "protects", "deceives", "attacks")
    assert trace(t, *hidden) == [
        ("moves", {"pairs": [[8, 9]], "places": [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]}),
        ("controls", {"player": "w", "victim": "v", "onto": "m", "held": True}),
        ("blocks", {"player": "e", "target": "cop", "held": True}),
        ("visits", {"player": "tr", "target": "x", "verb": "transport"}),
        ("visits", {"player": "tr", "target": "y", "verb": "transport"}),
        ("visits", {"player": "w", "target": "v", "verb": "control"}),
        ("visits", {"player": "e", "target": "cop", "verb": "block"}),
        ("visits", {"player": "doc", "target": "y", "verb": "heal"}),
        ("visits", {"player": "f", "target": "e", "verb": "frame"}),
        ("visits", {"player": "m", "target": "y", "verb": "kill"}),
        ("visits", {"player": "v", "target": "m", "verb": "shoot"}),
        ("protects", {"player": "doc", "target": "y", "means": "healing"}),
        ("deceives", {"player": "f", "target": "e", "how": "frame"}),
        ("attacks", {"player": "m", "target": "y", "attack": 1, "defense": 2, "kills": False, "how": "the Mafia"}),
        ("attacks", {"player": "v", "target": "m", "attack": 1, "defense": 0, "kills": True, "how": "a Vigilante"}),
    ]


@pytest.mark.parametrize(
    ("role", "words", "means"),
    [("Veteran", "alert", "alert"), ("Survivor", "vest", "vest"), ("Doctor", "heal_self", "healing")],
)
def test_the_trace_has_what_one_does_for_oneself(town, role, words, means):
    t = town(x=role, y="Citizen").night(x=words)
    assert trace(t, "protects", "visits") == [("protects", {"player": "x", "target": "x", "means": means})]


@pytest.mark.parametrize(
    ("role", "words", "how"),
    [
        ("Blackmailer", "blackmail x", "blackmail"),
        ("Forger", "forge x: Mine.", "forge"),
        ("Janitor", "clean x", "clean"),
        ("Arsonist", "douse x", "douse"),
        ("Framer", "frame x", "frame"),
    ],
)
def test_the_trace_has_deceptions(town, role, words, how):
    t = town(a=role, x="Citizen").night(a=words)
    assert trace(t, "deceives") == [("deceives", {"player": "a", "target": "x", "how": how})]


def test_the_trace_has_disguises(town):
    t = town(d="Disguiser", m="Mafioso", x="Citizen").night(d="disguise m x")
    assert trace(t, "deceives") == [("deceives", {"player": "d", "target": "x", "how": "disguise", "member": "m"})]


def test_the_trace_has_what_failed(town):
    t = town(e="Escort", w="Witch", vet="Veteran", x="Citizen").night(e="block vet", w="control vet x")
    assert trace(t, "controls", "blocks") == [
        ("controls", {"player": "w", "victim": "vet", "onto": "x", "held": False}),
        ("blocks", {"player": "e", "target": "vet", "held": False}),
    ]


def test_the_trace_has_bites_that_convert(town):
    t = town(v="Vampire", x="Citizen", y="Citizen").night(v="bite x")
    assert trace(t, "attacks") == [
        ("attacks", {"player": "v", "target": "x", "attack": 1, "defense": 0, "kills": False,
                     "how": "a bite that converts"}),
    ]  # fmt: skip


def test_guilt_comes_from_nobody(town):
    t = town(v="Vigilante", x="Citizen")
    t["v"].guilt = True
    t.night()
    assert trace(t, "attacks") == [
        ("attacks", {"player": None, "target": "v", "attack": 3, "defense": 0, "kills": True, "how": "guilt"}),
    ]


# --- death notes -------------------------------------------------------------------------------------


def notes(t):
    return [(t.names[e.data["player"]], e.data["text"]) for e in t.of_kind("note")]


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("Godfather", "kill x"),
        ("Mafioso", "kill x"),
        ("Vigilante", "shoot x"),
        ("Serial Killer", "stab x"),
        ("Werewolf", "maul x"),
        ("Arsonist", "ignite"),
    ],
)
def test_killers_leave_their_note(town, role, words):
    t = town(k=role, x="Citizen", y="Citizen")
    t["k"].note = "With regards."
    t["x"].doused = role == "Arsonist"
    assert notes(t.night(k=words)) == [("x", "With regards.")]


def test_the_jailor_leaves_its_note(town):
    t = town(j="Jailor", x="Mafioso", y="Citizen")
    t["j"].note = "Justice."
    assert notes(t.night(jail="x", j="execute x")) == [("x", "Justice.")]


def test_vampires_and_their_hunters_leave_notes(town):
    t = town(v="Vampire", x="Mafioso", vh="Vampire Hunter")
    t["v"].note, t["vh"].note = "Thirsty.", "One less."
    assert notes(t.night(v="bite x", vh="hunt v")) == [("v", "One less."), ("x", "Thirsty.")]
    t = town(v="Vampire", v2="Vampire", vh="Vampire Hunter")
    t["vh"].note = "One less."
    assert notes(t.night(v2="bite vh")) == [("v2", "One less.")]


def test_the_serial_killer_leaves_its_note_with_who_blocked_or_jailed_it(town):
    t = town(sk="Serial Killer", e="Escort", y="Citizen")
    t["sk"].note = "Never again."
    assert notes(t.night(e="block sk")) == [("e", "Never again.")]
    t = town(sk="Serial Killer", j="Jailor", y="Citizen")
    t["sk"].note = "Never again."
    assert notes(t.night(jail="sk")) == [("j", "Never again.")]


def test_neither_bodyguard_nor_veteran_nor_ghost_leaves_one_nor_does_the_werewolf_at_visitors(town):
    t = town(bg="Bodyguard", vet="Veteran", m="Mafioso", x="Citizen", cop="Sheriff", jest="Jester", y="Citizen")
    for name in t.names:
        t[name].note = f"By {name}."
    t.kill("jest")
    t["jest"].haunts = t["y"].mask
    t.night(bg="guard x", vet="alert", m="kill x", cop="interrogate vet", jest="haunt y")
    assert t.dead == {"bg", "m", "cop", "y"}
    assert notes(t) == []
    t = town(wolf="Werewolf", doc="Doctor", x="Citizen")
    t["wolf"].note = "Howl."
    t.night(wolf="maul x", doc="heal x")
    assert (t.dead, notes(t)) == ({"doc"}, [])


def test_an_arsonist_who_burns_leaves_no_note_for_itself(town):
    t = town(fire="Arsonist", x="Citizen", y="Citizen")
    t["fire"].note = "Warm."
    t["fire"].doused = t["x"].doused = True
    assert notes(t.night(fire="ignite")) == [("x", "Warm.")]


def test_there_is_no_note_where_none_was_written_or_the_rules_have_none(town):
    t = town(k="Serial Killer", x="Citizen", y="Citizen")
    assert notes(t.night(k="stab x")) == []
    t = town(rules=rule_set("classic", {"death_notes": False}), k="Serial Killer", x="Citizen", y="Citizen")
    t["k"].note = "With regards."
    assert notes(t.night(k="stab x")) == []


def test_every_killer_leaves_its_note(town):
    t = town(k="Serial Killer", m="Mafioso", x="Citizen")
    t["k"].note, t["m"].note = "Mine.", "Ours."
    assert notes(t.night(k="stab x", m="kill x")) == [("x", "Mine."), ("x", "Ours.")]  # by letters: not by who


# --- what little is left -------------------------------------------------------------------------------


def test_where_there_are_no_wills_none_is_shown(town):
    t = town(rules=rule_set("classic", {"wills": False}), k="Serial Killer", x="Citizen", y="Citizen")
    t["x"].will = "Mine."
    t.night(k="stab x")
    assert t.of_kind("will") == []
    assert t["x"].last_will_shown is None


def test_where_roles_are_not_told_none_is(town):
    t = town(rules=rule_set("classic", {"roles_on_death": False}), k="Serial Killer", x="Citizen", y="Citizen")
    t.night(k="stab x")
    assert t.of_kind("death")[0].data["role"] is None


def test_what_the_prisoner_chose_is_not_done(town):
    t = town(v="Vigilante", x="Citizen", j="Jailor")
    t.state.prisoner = t.seat("v")
    resolve_night(t.state, {t.seat("v"): Choice(Verb.SHOOT, (t.seat("x"),))})
    assert t["x"].alive
    assert t["v"].uses[Verb.SHOOT] == 3


def test_one_who_becomes_a_vampire_in_the_night_of_the_shot_feels_no_guilt(town):
    t = town(v="Vigilante", x="Citizen", vamp="Vampire", y="Citizen")
    t.night(v="shoot x", vamp="bite v")
    assert t["v"].role.name == "Vampire"
    assert t.next_night().dead == set()


def test_a_haunting_is_used_up(town):
    t = town(jest="Jester", x="Citizen", y="Citizen")
    t.lynch("jest", guilty=("x", "y"))
    t.night(jest="haunt x")
    assert t["jest"].uses[Verb.HAUNT] == 0


def test_one_who_remembers_being_an_executioner_is_told_its_target(town):
    t = town(am="Amnesiac", e="Executioner", x="Citizen", m="Mafioso").kill("e")
    t.night(am="remember e")
    (role,) = t.of_kind("role")
    assert (role.data["role"], role.data["target"], t.knowers(role)) == ("Executioner", t.seat("x"), {"am"})
    t = town(am="Amnesiac", d="Doctor", x="Citizen", m="Mafioso").kill("d")
    assert t.night(am="remember d").of_kind("role") == []


def test_a_vampire_whom_a_doctor_saves_from_the_hunter_learns_that_it_failed(town):
    t = town(v="Vampire", vh="Vampire Hunter", doc="Doctor")
    t.night(v="bite vh", doc="heal v")
    assert t.dead == set()
    assert t.told("v") == ["too_strong", "healed"]
    assert t["vh"].role.name == "Vampire Hunter"


def test_a_guarded_vampire_hunter_does_not_strike(town):
    t = town(v="Vampire", vh="Vampire Hunter", bg="Bodyguard", doc="Doctor")
    t.night(v="bite vh", bg="guard vh", doc="heal v")
    assert t.dead == {"bg"}
    assert t.told("vh") == ["guarded"]


def test_those_who_live_or_not_is_kept_for_all_who_ask(town):
    t = town(ret="Retributionist", x="Citizen", k="Serial Killer", y="Citizen")
    t.night(k="stab x")
    assert (t.state.others(), t.state.others(0)) == ((0, 2, 3), (2, 3))
    t.next_night(ret="raise x")
    assert (t.state.others(), t.state.others(0)) == ((0, 1, 2, 3), (1, 2, 3))
