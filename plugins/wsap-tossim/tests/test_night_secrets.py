"""Who may know what of a night: nobody more than the reference's "What is told" says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from wsap_tossim.engine.data.events import EVENTS, TOLD
from wsap_tossim.knowledge import Knowledge, seen_by


def seen(town: Any, *names: str) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return what some players may know but for their own choices, which are what is varied."""
    return {name: [(e.kind, e.data) for e in town.seen_by(name) if e.kind != "chose"] for name in names}


# --- a fact that differs is known to those alone who may know it -----------------------------------


def test_nobody_notices_a_frame_until_it_is_looked_at(town):
    def play(**acts: str) -> Any:
        t = town(f="Framer", boss="Godfather", x="Doctor", look="Lookout", cop="Sheriff", y="Citizen").begin()
        return t.night(look="watch y", cop="interrogate y", **acts)

    everybody = ("f", "boss", "x", "look", "cop", "y")
    assert seen(play(f="frame x"), *everybody) == seen(play(), *everybody)


def test_nobody_but_the_patient_and_its_doctor_learns_of_healing(town):
    def play(act: str) -> Any:
        t = town(d="Doctor", e="Doctor", m="Mafioso", x="Citizen", y="Citizen").begin()
        return t.night(**{act: "heal x"}, m="kill x")

    others = ("m", "x", "y")  # not the Doctors: one of them has saved somebody
    assert seen(play("d"), *others) == seen(play("e"), *others)


def test_the_blocked_do_not_learn_by_whom(town):
    def play(act: str) -> Any:
        t = town(e="Escort", c="Escort", x="Sheriff", y="Citizen").begin()
        return t.night(**{act: "block x"}, x="interrogate y")

    assert seen(play("e"), "e", "c", "x", "y") == seen(play("c"), "e", "c", "x", "y")


def test_the_controlled_do_not_learn_by_whom(town):
    def play(act: str) -> Any:
        t = town(w="Witch", v="Witch", x="Vigilante", y="Citizen").begin()
        return t.night(**{act: "control x y"})

    assert seen(play("w"), "w", "v", "x", "y") == seen(play("v"), "w", "v", "x", "y")


def test_the_victims_death_does_not_say_which_of_the_mafia_did_it(town):
    def play(boss: str, m: str) -> Any:
        t = town(boss=boss, m=m, x="Citizen", y="Citizen").begin()
        return t.night(**{"boss" if boss == "Godfather" else "m": "kill x"})

    assert seen(play("Godfather", "Mafioso"), "x", "y") == seen(play("Mafioso", "Godfather"), "x", "y")


@pytest.mark.parametrize("role", ["Doctor", "Vigilante", "Survivor", "Jester"])
def test_a_cleaned_role_reaches_nobody_but_the_janitor(town, role):
    def play(role: str) -> Any:
        t = town(jan="Janitor", m="Mafioso", x=role, am="Amnesiac", ret="Retributionist", y="Citizen").begin()
        t["x"].will = f"I was the {role}."
        return t.night(jan="clean x", m="kill x")

    others = ("m", "am", "ret", "y")
    one, other = play(role), play("Citizen")
    assert seen(one, *others) == seen(other, *others)
    for name in others:
        assert role not in json.dumps([e.data for e in one.events if e.known_by >> one.seat(name) & 1])
        assert one.options(name) == other.options(name)
    assert one.found("jan")["role"] == role


def test_a_forged_will_does_not_let_the_real_one_through(town):
    def play(will: str) -> Any:
        t = town(f="Forger", m="Mafioso", x="Doctor", y="Citizen").begin()
        t["x"].will = will
        return t.night(f="forge x: I am the Jester.", m="kill x")

    names = ("f", "m", "x", "y")
    assert seen(play("y is of the Mafia."), *names) == seen(play(""), *names)


def test_a_disguise_is_like_the_role_itself(town):
    t = town(d="Disguiser", m="Mafioso", x="Doctor", v="Vigilante", y="Citizen").begin()
    t.night(d="disguise m x", v="shoot m")
    real = town(d="Disguiser", m="Doctor", x="Doctor", v="Vigilante", y="Citizen").begin()
    real.night(v="shoot m")
    public = [(e.kind, e.data) for e in t.events if e.known_by == t.state.everyone]
    assert public == [(e.kind, e.data) for e in real.events if e.known_by == real.state.everyone]


def test_the_doused_alone_know_of_it(town):
    def play(**acts: str) -> Any:
        t = town(fire="Arsonist", x="Doctor", y="Citizen").begin()
        return t.night(**acts)

    assert seen(play(fire="douse x"), "fire", "y") == seen(play(), "fire", "y")


def test_the_spy_does_not_learn_who_visited(town):
    def play(act: str) -> Any:
        t = town(a="Framer", b="Framer", boss="Godfather", spy="Spy", x="Citizen").begin()
        return t.night(**{act: "frame x"})

    assert seen(play("a"), "spy", "x") == seen(play("b"), "spy", "x")
    assert play("a").found("spy") == ["x"]


def test_the_prisoner_is_not_told_who_the_jailor_is(town):
    def play(j: str, k: str, who: str) -> Any:
        t = town(j=j, k=k, x="Serial Killer", y="Citizen").begin()
        return t.night(jail="x", **{who: "execute x"})

    assert seen(play("Jailor", "Citizen", "j"), "x", "y") == seen(play("Citizen", "Jailor", "k"), "x", "y")


def test_death_notes_do_not_say_whose(town):
    def play(j: str, k: str, who: str) -> Any:
        t = town(j=j, k=k, x="Citizen", y="Citizen").begin()
        t["j"].note = t["k"].note = "With regards."
        return t.night(**{who: "stab x"})

    one, other = play("Serial Killer", "Citizen", "j"), play("Citizen", "Serial Killer", "k")
    assert seen(one, "x", "y") == seen(other, "x", "y")
    assert [e.data for e in one.of_kind("note")] == [{"player": one.seat("x"), "text": "With regards."}]


def test_lookouts_see_visitors_by_seat_not_by_what_they_did(town):
    t = town(look="Lookout", a="Sheriff", b="Mafioso", c="Doctor", x="Citizen")
    t.night(look="watch x", c="heal x", b="kill x", a="interrogate x")
    assert t.found("look") == ["a", "b", "c"]


def test_deaths_are_told_by_seat(town):
    t = town(a="Sheriff", b="Mafioso", c="Serial Killer", x="Citizen")
    t.night(c="stab a", b="kill x")
    assert [e.data["player"] for e in t.of_kind("death")] == [t.seat("a"), t.seat("x")]


# --- each kind of event ------------------------------------------------------------------------------

HIDDEN = ("moves", "controls", "blocks", "visits", "protects", "attacks", "deceives")
PRIVATE = ("chose", "role", "result", "told", "blackmailed")
PUBLIC = ("death", "will", "note", "haunted", "raised", "remembered")


def busy(town: Any) -> Any:
    """Return a town in which nearly everything happens that can in a night."""
    t = town(
        tr="Transporter", w="Witch", e="Escort", doc="Doctor", bg="Bodyguard", look="Lookout", spy="Spy", cop="Sheriff",
        inv="Investigator", ret="Retributionist", boss="Godfather", m="Mafioso", f="Framer", jan="Janitor",
        b="Blackmailer", fo="Forger", d="Disguiser", c="Consigliere", sk="Serial Killer", v="Vampire", v2="Vampire",
        am="Amnesiac", fire="Arsonist", jail="Jailor", guest="Survivor", x="Citizen", y="Citizen", z="Vigilante",
        gone="Medium", vet="Veteran", vh="Vampire Hunter", mayor="Mayor",
    )  # fmt: skip
    t.begin().kill("gone")
    for p in t.state.players:
        p.note = f"A note by {p.number}."
    t.night(
        jail="guest", tr="transport x y", w="control z inv", e="block cop", doc="heal mayor", bg="guard x",
        look="watch y", inv="investigate m", ret="raise gone", boss="kill y", f="frame doc", jan="clean inv",
        b="blackmail mayor", fo="forge y: I was a Mafioso.", d="disguise f mayor", c="consult mayor", sk="stab mayor",
        v2="bite look", am="remember gone", fire="douse vet", vet="alert", vh="hunt v2",
    )  # fmt: skip
    return t


def test_every_event_is_known_to_those_it_is_for(town):
    t = busy(town)
    kinds = set()
    for event in t.state.log:
        kinds.add(event.kind)
        if event.kind in HIDDEN:
            assert event.known_by == 0, event
        elif event.kind in PRIVATE:
            assert event.known_by == 1 << event.data["player"], event
        elif event.kind in PUBLIC:
            assert event.known_by == t.state.everyone, event
        else:
            assert event.kind == "becomes"
    assert kinds >= {*HIDDEN, *PRIVATE, "death", "will", "note", "raised", "becomes"}


def test_a_change_of_role_is_known_to_the_mates_alone(town):
    t = busy(town)
    for event in t.of_kind("becomes"):
        one = t.state.players[event.data["player"]]
        mates = {"Mafia": {"boss", "m", "f", "jan", "b", "fo", "d", "c"}, "Vampires": {"v", "v2", "look"}}
        allowed = mates.get(one.role.faction.value, set()) | {t.names[one.number]}
        assert t.knowers(event) <= allowed, event
        assert t.names[one.number] in t.knowers(event)


def test_events_are_ready_for_json_and_documented(town):
    for event in busy(town).state.log:
        assert event.kind in EVENTS
        assert json.loads(json.dumps(event.data)) == event.data
        if event.kind == "told":
            assert event.data["code"] in TOLD


def test_each_player_is_told_its_role_and_its_mates_alone(town):
    t = town(boss="Godfather", f="Framer", v1="Vampire", v2="Vampire", x="Citizen", w="Witch").begin()
    told = {t.names[e.data["player"]]: e.data["mates"] for e in t.of_kind("role")}
    assert told == {
        "boss": {"1": "Framer"},
        "f": {"0": "Godfather"},
        "v1": {"3": "Vampire"},
        "v2": {"2": "Vampire"},
        "x": {},
        "w": {},
    }


def test_a_new_vampire_and_the_old_ones_know_one_another(town):
    t = town(v="Vampire", x="Citizen", y="Citizen").begin()
    t.night(v="bite x")
    (event,) = t.of_kind("becomes")
    assert t.knowers(event) == {"v", "x"}
    (role,) = t.of_kind("role")
    assert (t.knowers(role), role.data["mates"]) == ({"x"}, {"0": "Vampire"})


def knowledge(town: Any, name: str) -> Knowledge:
    """Return what a player knows, from what it was told alone."""
    seat = town.seat(name)
    return Knowledge(seat).take_all(seen_by(seat, town.state.log))


def told_from_the_start(t: Any) -> Any:
    t.state.tell("begins", t.state.everyone, players=len(t.names), rules={}, mode="custom", slots=[])
    return t.begin()


def test_vampires_count_a_new_one_among_their_mates(town):
    t = told_from_the_start(town(v="Vampire", x="Citizen", y="Citizen"))
    t.night(v="bite x")
    assert (knowledge(t, "v").mates, knowledge(t, "x").mates) == ({1: "Vampire"}, {0: "Vampire"})
    assert knowledge(t, "x").role == "Vampire"
    assert knowledge(t, "y").mates == {}


def test_the_mafia_counts_an_amnesiac_who_remembers_among_its_mates(town):
    t = told_from_the_start(town(am="Amnesiac", f="Framer", boss="Godfather", x="Citizen")).kill("f")
    t.night(am="remember f")
    assert knowledge(t, "boss").mates == {0: "Framer", 1: "Framer"}
    assert knowledge(t, "am").mates == {2: "Godfather"}


def test_one_who_is_no_executioner_any_more_has_no_target(town):
    t = told_from_the_start(town(e="Executioner", x="Citizen", m="Mafioso"))
    assert knowledge(t, "e").target == t.seat("x")
    t.night(m="kill x")
    assert (knowledge(t, "e").role, knowledge(t, "e").target) == ("Jester", None)
