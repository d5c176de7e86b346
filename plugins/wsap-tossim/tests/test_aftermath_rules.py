"""Deception, investigation, Vampires, and what follows from a night or a lynching, as the reference has it."""

from __future__ import annotations

import pytest

from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.night.abilities import night_options

TOWN_WORDS = """
Bodyguard, Doctor, Escort, Investigator, Jailor, Lookout, Mayor, Medium, Retributionist, Sheriff, Spy, Transporter,
Vampire Hunter, Veteran, Vigilante, Citizen
"""
TOWN = [word.strip() for word in TOWN_WORDS.split(",")]
GROUPS = """
Vigilante, Veteran, Mafioso, Citizen
Medium, Janitor, Retributionist
Survivor, Vampire Hunter, Amnesiac
Spy, Blackmailer, Jailor
Sheriff, Executioner, Werewolf
Framer, Vampire, Jester
Lookout, Forger, Witch
Escort, Transporter, Consort
Doctor, Disguiser, Serial Killer
Investigator, Consigliere, Mayor
Bodyguard, Godfather, Arsonist
"""
GROUP = {name: line.split(", ") for line in GROUPS.strip().splitlines() for name in line.split(", ")}
SUSPICIOUS = [
    "Mafioso",
    "Blackmailer",
    "Consigliere",
    "Consort",
    "Disguiser",
    "Forger",
    "Framer",
    "Janitor",
    "Serial Killer",
]

# --- deception ---------------------------------------------------------------------------------


def test_a_framed_player_misleads_until_it_is_looked_at(town):
    t = town(f="Framer", cop="Sheriff", inv="Investigator", x="Citizen")
    t.night(f="frame x")
    t.next_night(cop="interrogate x", inv="investigate x")
    assert t.found("cop") is True
    assert t.found("inv") == GROUP["Framer"]
    t.next_night(cop="interrogate x", inv="investigate x")
    assert t.found("cop") is False
    assert t.found("inv") == GROUP["Citizen"]


def test_a_frame_misleads_in_its_own_night(town):
    t = town(f="Framer", cop="Sheriff", x="Citizen")
    assert t.night(f="frame x", cop="interrogate x").found("cop") is True


def test_a_frame_lasts_one_night_by_its_switch(town):
    t = town(rules=rule_set("classic", {"frame_lasts": False}), f="Framer", cop="Sheriff", x="Citizen")
    t.night(f="frame x")
    assert t.next_night(cop="interrogate x").found("cop") is False


def test_gasoline_misleads_the_investigator_and_a_frame_goes_before(town):
    t = town(fire="Arsonist", f="Framer", boss="Godfather", inv="Investigator", cop="Sheriff", x="Citizen")
    t.night(fire="douse x", inv="investigate x", cop="interrogate x")
    assert t.found("inv") == GROUP["Arsonist"]
    assert t.found("cop") is False
    t.next_night(f="frame x", inv="investigate x")
    assert t.found("inv") == GROUP["Framer"]


def test_neither_frame_nor_gasoline_misleads_the_consigliere(town):
    t = town(c="Consigliere", x="Mayor", y="Citizen")
    t["x"].framed = t["x"].doused = True
    t.night(c="consult x")
    assert t.found("c") == "Mayor"
    assert t["x"].framed


def test_the_blackmailed_are_silent_on_the_next_day(town):
    t = town(b="Blackmailer", x="Citizen", y="Citizen")
    t.night(b="blackmail x")
    assert t["x"].blackmailed
    assert [t.knowers(e) for e in t.of_kind("blackmailed")] == [{"x"}]


def test_the_dead_are_not_blackmailed(town):
    t = town(b="Blackmailer", m="Mafioso", x="Citizen", y="Citizen")
    t.night(b="blackmail x", m="kill x")
    assert t.of_kind("blackmailed") == []


def test_a_cleaned_death_hides_role_and_will_from_all_but_the_janitor(town):
    t = town(jan="Janitor", m="Mafioso", x="Doctor", y="Citizen")
    t["x"].will = "I healed y."
    t.night(jan="clean x", m="kill x")
    assert t.of_kind("death")[0].data["role"] is None
    assert t.of_kind("will")[0].data == {"player": t.seat("x"), "text": None, "cleaned": True}
    assert t.found("jan") == {"role": "Doctor", "will": "I healed y."}
    assert t["jan"].uses["clean"] == 2
    assert t["x"].known_role is None


def test_a_cleaning_counts_only_if_the_player_dies(town):
    t = town(jan="Janitor", boss="Godfather", x="Doctor", y="Citizen")
    t.night(jan="clean x")
    assert t["jan"].uses["clean"] == 3
    assert t.found("jan") is None


def test_cleaning_works_on_deaths_of_whatever_cause(town):
    t = town(jan="Janitor", sk="Serial Killer", x="Doctor")
    t.night(jan="clean x", sk="stab x")
    assert t.of_kind("death")[0].data["role"] is None


def test_a_janitor_cleans_three_times(town):
    t = town(jan="Janitor", boss="Godfather", sk="Serial Killer", a="Citizen", b="Citizen", c="Citizen", d="Citizen")
    for name in "abc":
        t.next_night(jan=f"clean {name}", sk=f"stab {name}")
    assert t.options("jan") == {}


def test_a_forged_will_is_shown_in_place_of_the_real_one(town):
    t = town(f="Forger", m="Mafioso", x="Doctor", y="Citizen")
    t["x"].will = "I healed y."
    t.night(f="forge x: I am a Witch.", m="kill x")
    assert t.of_kind("will")[0].data == {"player": t.seat("x"), "text": "I am a Witch.", "cleaned": False}
    assert t["x"].last_will_shown == "I am a Witch."
    assert t["f"].uses["forge"] == 2
    assert t.told("f") == ["forged"]


def test_a_forgery_counts_only_if_the_player_dies(town):
    t = town(f="Forger", boss="Godfather", x="Doctor", y="Citizen")
    t.night(f="forge x: I am a Witch.")
    assert t["f"].uses["forge"] == 3


def test_cleaning_goes_before_forging(town):
    t = town(f="Forger", jan="Janitor", m="Mafioso", x="Doctor")
    t["x"].will = "I am the Doctor."
    t.night(f="forge x: I am a Witch.", jan="clean x", m="kill x")
    assert t.of_kind("will")[0].data["text"] is None
    assert t.found("jan") == {"role": "Doctor", "will": "I am the Doctor."}
    assert (t["f"].uses["forge"], t["jan"].uses["clean"]) == (3, 2)


def test_of_two_forgers_the_higher_seat_prevails_and_two_janitors_both_learn(town):
    t = town(f1="Forger", f2="Forger", m="Mafioso", x="Doctor")
    t.night(f1="forge x: One.", f2="forge x: Two.", m="kill x")
    assert t["x"].last_will_shown == "Two."
    assert (t["f1"].uses["forge"], t["f2"].uses["forge"]) == (3, 2)
    t = town(j1="Janitor", j2="Janitor", m="Mafioso", x="Doctor")
    t.night(j1="clean x", j2="clean x", m="kill x")
    assert [t.found(n)["role"] for n in ("j1", "j2")] == ["Doctor", "Doctor"]


def test_a_controlled_forger_writes_nothing(town):
    t = town(w="Witch", f="Forger", m="Mafioso", x="Doctor", y="Citizen")
    t["x"].will = "I am the Doctor."
    t.night(w="control f x", f="forge y: I am a Witch.", m="kill x")
    assert t["x"].last_will_shown == ""


def test_a_disguised_member_of_the_mafia_is_shown_with_the_others_role(town):
    t = town(d="Disguiser", m="Mafioso", x="Doctor", v="Vigilante")
    assert t.options("d") == {"disguise": [["d", "m"], ["x", "v"]]}
    t["m"].will = "I am Mafioso, sadly."
    t.night(d="disguise m x", v="shoot m")
    assert t.of_kind("death")[0].data["role"] == "Doctor"
    assert t.of_kind("will")[0].data["text"] == "I am Mafioso, sadly."
    assert t["m"].role.name == "Mafioso"


def test_a_disguise_lasts_through_the_next_day_and_no_longer(town):
    t = town(d="Disguiser", m="Mafioso", x="Doctor", v="Vigilante")
    t.night(d="disguise m x")
    t.state.day = 3
    t.lynch("m")
    assert t.of_kind("death")[0].data["role"] == "Doctor"
    t = town(d="Disguiser", m="Mafioso", x="Doctor", v="Vigilante")
    t.night(d="disguise m x")
    t.next_night(v="shoot m")
    assert t.of_kind("death")[0].data["role"] == "Mafioso"


def test_cleaning_goes_before_a_disguise(town):
    t = town(d="Disguiser", jan="Janitor", m="Mafioso", x="Doctor", v="Vigilante", w="Witch")
    t.night(d="disguise m x", w="control jan m", v="shoot m")
    assert t.of_kind("death")[0].data["role"] is None
    assert t.found("jan")["role"] == "Mafioso"


def test_the_disguiser_visits_the_second_only(town):
    t = town(d="Disguiser", m="Mafioso", x="Doctor", l1="Lookout", l2="Lookout")
    t.night(d="disguise m x", l1="watch m", l2="watch x")
    assert t.found("l1") == []
    assert t.found("l2") == ["d"]


# --- investigations ----------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(GROUP))
def test_the_investigator_finds_the_group_and_the_consigliere_the_role(town, role):
    t = town(day=3, inv="Investigator", c="Consigliere", x=role)
    t.night(inv="investigate x", **({} if GROUP[role] and t["x"].role.faction == "Mafia" else {"c": "consult x"}))
    assert t.found("inv") == GROUP[role]
    if t["x"].role.faction != "Mafia":
        assert t.found("c") == role


@pytest.mark.parametrize("role", list(GROUP))
def test_the_sheriff_finds_the_mafia_but_its_head_and_the_serial_killer(town, role):
    t = town(day=3, cop="Sheriff", x=role)
    assert t.night(cop="interrogate x").found("cop") is (role in SUSPICIOUS)


@pytest.mark.parametrize(("day", "suspicious"), [(2, True), (3, False), (4, True)])
def test_the_sheriff_finds_the_werewolf_on_even_nights(town, day, suspicious):
    t = town(day=day, cop="Sheriff", x="Werewolf")
    assert t.night(cop="interrogate x").found("cop") is suspicious


@pytest.mark.parametrize(
    ("switch", "role"),
    [("detect_serial_killer", "Serial Killer"), ("detect_werewolf", "Werewolf"), ("detect_arsonist", "Arsonist")],
)
@pytest.mark.parametrize("value", [True, False])
def test_whom_else_the_sheriff_finds_is_switched(town, switch, role, value):
    t = town(rules=rule_set("classic", {switch: value}), cop="Sheriff", x=role)
    assert t.night(cop="interrogate x").found("cop") is value


def test_the_lookout_sees_all_who_visit_but_not_itself(town):
    t = town(l1="Lookout", l2="Lookout", m="Mafioso", doc="Doctor", x="Citizen", j="Jailor")
    t.night(l1="watch x", l2="watch x", m="kill x", doc="heal x")
    assert t.found("l1") == ["l2", "m", "doc"]
    assert t.found("l2") == ["l1", "m", "doc"]


def test_neither_jailor_nor_one_who_stays_at_home_is_seen(town):
    t = town(look="Lookout", j="Jailor", x="Mafioso", fire="Arsonist")
    t["x"].doused = True
    assert t.night(look="watch x", jail="x", j="execute x", fire="ignite").found("look") == []


def test_the_spy_learns_whom_the_mafia_visited_and_not_who(town):
    t = town(spy="Spy", m="Mafioso", f="Framer", boss="Godfather", x="Citizen", y="Citizen", cop="Sheriff")
    t.night(boss="kill y", f="frame x", cop="interrogate m")
    assert t.found("spy") == ["x", "y"]


def test_investigators_who_die_learn_what_they_found(town):
    t = town(cop="Sheriff", m="Mafioso", x="Citizen")
    t.night(cop="interrogate m", m="kill cop")
    assert t.dead == {"cop"}
    assert t.found("cop") is True


def test_roles_are_found_as_they_were_in_the_evening(town):
    t = town(c="Consigliere", v="Vampire", x="Doctor")
    t.night(c="consult x", v="bite x")
    assert t["x"].role.name == "Vampire"
    assert t.found("c") == "Doctor"


def test_the_vampire_hunter_learns_whether_it_was_one(town):
    t = town(vh="Vampire Hunter", v="Vampire", x="Citizen")
    assert t.night(vh="hunt x").found("vh") is False
    assert t.next_night(vh="hunt v").found("vh") is True
    assert t.dead == {"v"}
    assert t.causes("v") == ["a Vampire Hunter"]


# --- Vampires ----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [*[r for r in TOWN if r != "Vampire Hunter"], "Amnesiac", "Survivor", "Jester"])
def test_a_bite_converts_town_and_harmless(town, role):
    t = town(v="Vampire", x=role, y="Citizen")
    t.night(v="bite x")
    assert t.dead == set()
    assert t["x"].role.name == "Vampire"


@pytest.mark.parametrize("role", ["Executioner", "Witch", "Godfather", "Arsonist", "Serial Killer"])
def test_basic_defense_turns_a_bite(town, role):
    t = town(v="Vampire", x=role, y="Citizen")
    t.night(v="bite x")
    assert t.dead == set()
    assert t["x"].role.name == role
    assert t.told("x") == ["defended"]


def test_a_werewolf_at_home_mauls_the_vampire_that_comes(town):
    t = town(v="Vampire", x="Werewolf", y="Citizen")
    assert t.night(v="bite x").dead == {"v"}


def test_a_witch_who_has_lost_her_defense_is_converted(town):
    t = town(v="Vampire", w="Witch", y="Citizen")
    t["w"].hit = True
    assert t.night(v="bite w").became() == {"w": "Vampire"}


@pytest.mark.parametrize("role", ["Mafioso", "Blackmailer", "Consigliere", "Consort", "Disguiser", "Forger", "Janitor"])
def test_a_bite_kills_mafia_without_defense(town, role):
    t = town(v="Vampire", x=role, y="Citizen")
    assert t.night(v="bite x").dead == {"x"}


def test_with_four_vampires_a_bite_kills(town):
    t = town(v1="Vampire", v2="Vampire", v3="Vampire", v4="Vampire", x="Citizen")
    assert t.night(v4="bite x").dead == {"x"}
    t = town(rules=rule_set("classic", {"vampires_at_most": 2}), v1="Vampire", v2="Vampire", x="Citizen")
    assert t.night(v2="bite x").dead == {"x"}


def test_healing_prevents_conversion(town):
    t = town(v="Vampire", doc="Doctor", x="Citizen")
    t.night(v="bite x", doc="heal x")
    assert t["x"].role.name == "Citizen"
    assert (t.told("x"), t.told("doc")) == (["healed"], ["target_attacked"])


def test_one_who_is_killed_in_the_same_night_is_not_converted(town):
    t = town(v="Vampire", m="Mafioso", x="Citizen")
    t.night(v="bite x", m="kill x")
    assert t.dead == {"x"}
    assert t["x"].role.name == "Citizen"
    assert t.became() == {}


def test_a_vampire_hunter_strikes_the_vampire_that_bites_it(town):
    t = town(v="Vampire", v2="Vampire", vh="Vampire Hunter")
    t.night(v2="bite vh")
    assert t.dead == {"v2"}
    assert t["vh"].role.name == "Vampire Hunter"
    assert t.told("vh") == ["hunted_at_home"]


def test_only_the_youngest_vampire_bites(town):
    t = town(v1="Vampire", v2="Vampire", x="Citizen", y="Citizen")
    assert t.options("v1") == {}
    assert t.options("v2") == {"bite": [["x", "y"]]}
    t["v1"].converted_on = 1
    assert t.options("v2") == {}
    assert t.options("v1") == {"bite": [["x", "y"]]}


def test_one_in_jail_is_passed_over(town):
    t = town(j="Jailor", v1="Vampire", v2="Vampire", x="Citizen")
    t.state.prisoner = t.seat("v2")
    assert t.options("v1") == {"bite": [["j", "x"]]}


def test_vampires_rest_in_the_night_after_a_conversion(town):
    t = town(v="Vampire", x="Citizen", y="Citizen", z="Citizen")
    t.night(v="bite x")
    t.state.day = 3
    assert t.options("v") == t.options("x") == {}
    t.night()
    t.state.day = 4
    assert t.options("v") == {}
    assert t.options("x") == {"bite": [["y", "z"]]}


def test_vampires_do_not_rest_after_a_bite_that_converted_nobody(town):
    t = town(v="Vampire", m="Mafioso", y="Citizen")
    assert t.night(v="bite m").dead == {"m"}
    t.state.day = 3
    assert t.options("v") == {"bite": [["y"]]}


def test_a_new_vampire_has_the_abilities_of_one_and_no_other(town):
    t = town(v="Vampire", x="Veteran", y="Citizen")
    t.night(v="bite x")
    t.state.day = 4
    assert t.options("x") == {"bite": [["y"]]}


def test_a_vampire_forced_onto_another_kills_it(town):
    t = town(w="Witch", v1="Vampire", v2="Vampire", x="Citizen")
    t.night(w="control v2 v1", v2="bite x")
    assert t.dead == {"v1"}
    assert t.became() == {}


# --- raising and remembering -------------------------------------------------------------------


def test_the_retributionist_raises_one_of_the_town_once(town):
    t = town(ret="Retributionist", doc="Doctor", m="Mafioso", boss="Godfather").kill("doc", "m")
    t["doc"].uses["heal_self"] = 0
    assert t.options("ret") == {"raise": [["doc"]]}
    t.night(ret="raise doc")
    assert t["doc"].alive
    assert [t.knowers(e) for e in t.of_kind("raised")] == [{"ret", "doc", "m", "boss"}]
    assert t.options("ret") == {}
    assert list(t.options("doc")) == ["heal"]


def test_the_raised_are_not_attacked_in_the_same_night(town):
    t = town(ret="Retributionist", doc="Doctor", m="Mafioso", x="Citizen").kill("doc")
    t["doc"].doused = False
    t.night(ret="raise doc", m="kill ret")
    assert t.dead == {"ret"}
    assert t["doc"].alive


def test_raising_a_disguised_body_fails_and_is_used_up(town):
    t = town(d="Disguiser", m="Mafioso", x="Doctor", v="Vigilante", ret="Retributionist")
    t.night(d="disguise m x", v="shoot m")
    t.state.day = 3
    assert t.options("ret") == {"raise": [["m"]]}
    t.night(ret="raise m")
    assert not t["m"].alive
    assert t.told("ret") == ["raise_failed"]
    assert t["ret"].uses["raise"] == 0


def test_the_cleaned_can_be_neither_raised_nor_remembered(town):
    t = town(ret="Retributionist", am="Amnesiac", jan="Janitor", m="Mafioso", x="Doctor")
    t.night(jan="clean x", m="kill x")
    assert t.options("ret") == t.options("am") == {}


def test_an_amnesiac_becomes_what_another_was_and_all_learn_the_role(town):
    t = town(am="Amnesiac", doc="Doctor", x="Citizen").kill("doc")
    assert t.options("am") == {"remember": [["doc"]]}
    t.night(am="remember doc")
    assert t["am"].role.name == "Doctor"
    assert [(e.data, t.knowers(e)) for e in t.of_kind("remembered")] == [({"role": "Doctor"}, {"am", "doc", "x"})]
    assert [t.knowers(e) for e in t.of_kind("becomes")] == [{"am"}]


def test_unique_roles_cannot_be_remembered(town):
    t = town(am="Amnesiac", j="Jailor", mayor="Mayor", m="Mafioso", cop="Sheriff").kill("j", "mayor", "m", "cop")
    assert t.options("am") == {"remember": [["cop"]]}


def test_where_roles_are_not_told_any_of_the_dead_can_be_chosen(town):
    rules = rule_set("classic", {"roles_on_death": False})
    t = town(rules=rules, am="Amnesiac", ret="Retributionist", j="Jailor", m="Framer", boss="Godfather").kill("j", "m")
    assert t.options("am") == {"remember": [["j", "m"]]}
    assert t.options("ret") == {"raise": [["j", "m"]]}
    t.night(am="remember j")
    assert t.told("am") == ["remember_failed"]
    assert t["am"].uses["remember"] == 1
    assert t.next_night(am="remember m").became()["am"] == "Framer"


def test_a_killed_or_converted_amnesiac_remembers_nothing(town):
    t = town(am="Amnesiac", doc="Doctor", m="Mafioso").kill("doc")
    t.night(am="remember doc", m="kill am")
    assert t["am"].role.name == "Amnesiac"
    assert t.of_kind("remembered") == []
    t = town(am="Amnesiac", doc="Doctor", v="Vampire").kill("doc")
    assert t.night(am="remember doc", v="bite am").became() == {"am": "Vampire"}
    assert t.of_kind("remembered") == []


def test_an_amnesiac_who_joins_the_mafia_and_its_mates_know_one_another(town):
    t = town(am="Amnesiac", f="Framer", boss="Godfather", x="Citizen").kill("f")
    t.night(am="remember f")
    assert [t.knowers(e) for e in t.of_kind("becomes")] == [{"am", "boss"}]
    (role,) = t.of_kind("role")
    assert t.knowers(role) == {"am"}
    assert role.data["mates"] == {str(t.seat("boss")): "Godfather"}


def test_a_remembered_executioner_gets_a_target(town):
    t = town(am="Amnesiac", e="Executioner", mayor="Mayor", x="Citizen", j="Jailor").kill("e")
    t.night(am="remember e")
    assert t["am"].target == t.seat("x")
    t = town(am="Amnesiac", e="Executioner", mayor="Mayor", m="Mafioso").kill("e")
    t.night(am="remember e")
    assert t["am"].role.name == "Jester"


def test_one_who_remembers_being_a_vampire_is_the_youngest(town):
    t = town(am="Amnesiac", v1="Vampire", v2="Vampire", x="Citizen").kill("v2")
    t.night(am="remember v2")
    t.state.day = 3
    assert t.options("v1") == {}
    assert t.options("am") == {"bite": [["x"]]}


# --- those whose role depends on others --------------------------------------------------------


def test_an_executioners_target_is_of_the_town_but_neither_mayor_nor_jailor(town):
    for seed in range(20):
        t = town(seed=seed, e="Executioner", mayor="Mayor", j="Jailor", m="Mafioso", x="Citizen", y="Doctor").begin()
        assert t["e"].target in (t.seat("x"), t.seat("y"))
        (told,) = [e for e in t.state.log if e.kind == "role" and e.data["player"] == 0]
        assert told.data["target"] == t["e"].target
        assert t.knowers(told) == {"e"}


def test_an_executioner_without_a_possible_target_is_a_jester(town):
    t = town(e="Executioner", mayor="Mayor", m="Mafioso").begin()
    assert t["e"].role.name == "Jester"


def test_an_executioner_becomes_a_jester_when_its_target_dies_otherwise(town):
    t = town(e="Executioner", x="Citizen", m="Mafioso")
    t["e"].target = t.seat("x")
    t.night(m="kill x")
    assert t.became() == {"e": "Jester"}
    assert [t.knowers(e) for e in t.of_kind("becomes")] == [{"e"}]


def test_an_executioner_wins_when_its_target_is_lynched(town):
    t = town(e="Executioner", x="Citizen", m="Mafioso")
    t["e"].target = t.seat("x")
    t.lynch("x")
    assert t["e"].won
    assert t.told("e") == ["target_lynched"]
    assert t["e"].role.name == "Executioner"


def test_a_dead_executioner_does_not_win(town):
    t = town(e="Executioner", x="Citizen", m="Mafioso")
    t["e"].target = t.seat("x")
    t.kill("e")
    t.lynch("x")
    assert not t["e"].won


def test_the_mafioso_becomes_godfather_when_that_one_dies(town):
    t = town(boss="Godfather", m="Mafioso", f="Framer", v="Vigilante")
    t.night(v="shoot m")
    assert t.became() == {}
    t = town(boss="Godfather", m="Mafioso", f="Framer", v="Vigilante")
    t.lynch("boss")
    assert t.became() == {"m": "Godfather"}
    assert [t.knowers(e) for e in t.of_kind("becomes")] == [{"m", "f"}]


def test_some_mafia_becomes_mafioso_when_neither_killer_is_left(town):
    t = town(boss="Godfather", m="Mafioso", f="Framer", j="Jailor", wolf="Werewolf")
    t.night(jail="boss", j="execute boss", wolf="maul m")
    assert t.dead == {"boss", "m"}
    assert t.became() == {"f": "Mafioso"}


def test_without_promotion_the_mafia_stays_without_a_killer(town):
    t = town(rules=rule_set("classic", {"promotion_of_mafia": False}), m="Mafioso", f="Framer", v="Vigilante")
    t.night(v="shoot m")
    assert t.became() == {}


def test_a_mafia_without_a_killer_chooses_one_before_the_first_night(town):
    t = town(f="Framer", jan="Janitor", x="Citizen").begin()
    assert sorted(p.role.name for p in t.state.players) in (
        ["Citizen", "Framer", "Mafioso"],
        ["Citizen", "Janitor", "Mafioso"],
    )


def test_a_vampire_hunter_without_vampires_becomes_a_vigilante_with_one_bullet(town):
    t = town(vh="Vampire Hunter", v="Vampire", x="Citizen")
    t.night(vh="hunt v")
    assert t.became() == {"vh": "Vigilante"}
    assert t["vh"].uses["shoot"] == 1
    assert [t.knowers(e) for e in t.of_kind("becomes")] == [{"vh"}]
    t = town(rules=rule_set("classic", {"hunter_bullets": 3}), vh="Vampire Hunter", v="Vampire", x="Citizen")
    t.lynch("v")
    assert t["vh"].uses["shoot"] == 3


def test_the_lynched_of_any_defense_die(town):
    t = town(sk="Serial Killer", x="Citizen")
    t.lynch("sk")
    assert t.dead == {"sk"}
    assert t.causes("sk") == ["lynching"]
    assert t.of_kind("death")[0].data["when"] == "day"


def test_a_dead_medium_has_one_seance(town):
    t = town(med="Medium", x="Citizen")
    assert t.at_dusk("med") == {}
    t.kill("med")
    assert t.at_dusk("med") == {"seance": [["x"]]}
    t["med"].uses["seance"] = 0
    assert t.at_dusk("med") == {}


# --- switches ----------------------------------------------------------------------------------


def test_a_serial_killer_is_blocked_like_others_by_its_switch(town):
    rules = rule_set("classic", {"killer_strikes_back": False})
    t = town(rules=rules, e="Escort", sk="Serial Killer", x="Citizen")
    assert t.night(e="block sk", sk="stab x").dead == set()
    assert t.told("sk") == ["blocked"]


def test_a_jester_may_haunt_by_its_switch(town):
    t = town(jest="Jester", x="Citizen", y="Citizen")
    t.lynch("jest", guilty=("x",))
    assert t.told("jest") == ["may_haunt"]
    t = town(rules=rule_set("classic", {"jester_haunts": False}), jest="Jester", x="Citizen", y="Citizen")
    t.lynch("jest", guilty=("x",))
    assert t["jest"].won
    assert (t.told("jest"), t.options("jest")) == ([], {})


def test_an_executioner_stays_one_by_its_switch(town):
    t = town(rules=rule_set("classic", {"executioner_turns": False}), e="Executioner", x="Citizen", m="Mafioso")
    t["e"].target = t.seat("x")
    assert t.night(m="kill x").became() == {}


def test_two_who_ignite_burn_nobody_twice(town):
    t = town(f1="Arsonist", f2="Arsonist", x="Citizen", y="Citizen")
    t["f1"].note, t["f2"].note = "One.", "Two."
    t["x"].doused = True
    t.night(f1="ignite", f2="ignite")
    assert [e.data["text"] for e in t.of_kind("note")] == ["One."]


# --- what is offered ---------------------------------------------------------------------------


def test_vampires_bite_in_the_first_night(town):
    assert town(day=1, v="Vampire", x="Citizen").options("v") == {"bite": [["x"]]}


def test_a_forgery_alone_takes_words(town):
    t = town(f="Forger", jan="Janitor", x="Citizen")
    assert [o.text for name in ("f", "jan") for o in night_options(t.state, t[name])] == [True, False]


def test_the_dead_of_the_town_can_be_raised_the_unique_too(town):
    t = town(ret="Retributionist", doc="Doctor", f="Framer", j="Jailor", s="Survivor").kill("doc", "f", "j", "s")
    assert t.options("ret") == {"raise": [["doc", "j"]]}


def test_a_ghost_cannot_haunt_the_dead(town):
    t = town(jest="Jester", x="Citizen", y="Citizen")
    t.lynch("jest", guilty=("x",))
    t.kill("x")
    assert t.options("jest") == {}


def test_an_executioner_does_not_mind_the_death_of_others(town):
    t = town(e="Executioner", x="Citizen", y="Citizen", m="Mafioso")
    t["e"].target = t.seat("x")
    assert t.night(m="kill y").became() == {}


def test_an_executioner_who_has_won_stays_one(town):
    t = town(e="Executioner", x="Citizen", m="Mafioso", y="Citizen")
    t["e"].target = t.seat("x")
    t.lynch("x")
    assert t.became() == {}


def test_a_conversion_counts_against_a_draw_like_a_death(town):
    t = town(v="Vampire", x="Citizen", y="Citizen")
    assert t.night(v="bite x").state.last_death_day == 2
    t = town(m="Mafioso", x="Citizen", y="Citizen")
    assert t.night(m="kill x").state.last_death_day == 2
    assert town(m="Mafioso", x="Citizen", y="Citizen").night().state.last_death_day == 0
