"""The night, rule by rule, as the reference has it (docs/reference/tossim-rules.md)."""

from __future__ import annotations

import pytest

from wsap_tossim.engine.data.rules import rule_set

# --- jail --------------------------------------------------------------------------------------


def test_the_prisoner_does_nothing_and_is_well_protected(town):
    t = town(j="Jailor", v="Vigilante", boss="Godfather", x="Citizen")
    assert t.night(jail="v", boss="kill v").dead == set()
    assert t.told("v") == ["behind_bars"]
    assert t.told("boss") == ["too_strong"]


def test_a_prisoner_has_no_options(town):
    t = town(j="Jailor", v="Veteran", x="Citizen")
    t.state.prisoner = t.seat("v")
    assert t.options("v") == {}
    assert t.options("j") == {"execute": [["v"]]}


def test_nobody_is_executed_in_the_first_night(town):
    t = town(day=1, j="Jailor", v="Veteran")
    t.state.prisoner = t.seat("v")
    assert t.options("j") == {}


def test_execution_exceeds_the_defense_of_jail_and_doctor(town):
    t = town(j="Jailor", doc="Doctor", sk="Serial Killer")
    t.night(jail="sk", j="execute sk", doc="heal sk")
    assert t.dead == {"sk"}
    assert t.causes("sk") == ["the Jailor"]
    assert t["j"].uses["execute"] == 2


def test_a_serial_killer_in_jail_kills_the_jailor_who_spares_it(town):
    t = town(j="Jailor", sk="Serial Killer", x="Citizen")
    assert t.night(jail="sk").dead == {"j"}


def test_a_serial_killer_in_jail_kills_the_jailor_who_is_blocked(town):
    t = town(j="Jailor", e="Escort", sk="Serial Killer")
    t.night(jail="sk", j="execute sk", e="block j")
    assert t.dead == {"j"}
    assert t["j"].uses["execute"] == 3


def test_a_blocked_jailor_executes_nobody(town):
    t = town(j="Jailor", e="Escort", m="Mafioso")
    assert t.night(jail="m", j="execute m", e="block j").dead == set()


def test_a_jailor_who_executes_town_executes_no_more_but_jails(town):
    t = town(j="Jailor", x="Citizen", y="Citizen")
    t.night(jail="x", j="execute x")
    assert t.dead == {"x"}
    assert "forfeited" in t.told("j")
    t.state.prisoner = t.seat("y")
    t.state.day = 3
    assert t.options("j") == {}
    assert t.at_dusk("j") == {"jail": [["y"]]}


def test_the_jailor_jails_any_other_living_player(town):
    t = town(j="Jailor", x="Citizen", m="Mafioso", gone="Citizen").kill("gone")
    assert t.at_dusk("j") == {"jail": [["x", "m"]]}
    assert t.at_dusk("x") == {}


def test_a_transport_with_the_prisoner_fails_for_both(town):
    t = town(j="Jailor", tr="Transporter", v="Citizen", x="Citizen", m="Mafioso")
    t.night(jail="v", tr="transport v x", m="kill x")
    assert t.dead == {"x"}
    assert t.told("tr") == ["transport_failed"]
    assert t.told("x") == []


def test_a_prisoner_cannot_be_controlled(town):
    t = town(j="Jailor", w="Witch", v="Vigilante", x="Citizen")
    assert t.night(jail="v", w="control v x").dead == set()
    assert t.told("w") == ["control_failed"]
    assert t.told("v") == []


def test_a_werewolf_in_jail_attacks_nobody(town):
    t = town(j="Jailor", wolf="Werewolf", cop="Sheriff", x="Citizen")
    t.night(jail="wolf", cop="interrogate wolf")
    assert t.dead == set()
    assert t.found("cop") is True


def test_prisoners_are_looked_at_framed_and_doused_like_anybody(town):
    t = town(j="Jailor", m="Mafioso", cop="Sheriff", look="Lookout", fire="Arsonist")
    t.night(jail="m", cop="interrogate m", look="watch m", fire="douse m")
    assert t.found("cop") is True
    assert t.found("look") == ["cop", "fire"]
    assert t["m"].doused


def test_bars_do_not_help_against_fire(town):
    t = town(j="Jailor", fire="Arsonist", x="Citizen")
    t["x"].doused = True
    assert t.night(jail="x", fire="ignite").dead == {"x"}


def test_a_vampire_hunter_in_jail_is_safe_from_a_bite_but_does_not_strike(town):
    t = town(j="Jailor", vh="Vampire Hunter", vamp="Vampire")
    t.night(jail="vh", vamp="bite vh")
    assert t.dead == set()
    assert t["vh"].role.name == "Vampire Hunter"


# --- transports --------------------------------------------------------------------------------


def test_who_goes_to_one_meets_the_other(town):
    t = town(tr="Transporter", a="Citizen", b="Citizen", m="Mafioso", doc="Doctor")
    t.night(tr="transport a b", m="kill a", doc="heal a")
    assert t.dead == set()
    assert t.told("b") == ["transported", "healed"]
    assert t.told("a") == ["transported"]


def test_a_later_transport_works_on_what_an_earlier_one_left(town):
    t = town(t1="Transporter", t2="Transporter", a="Citizen", b="Mayor", c="Spy", x="Consigliere", y="Consigliere",
             z="Consigliere")  # fmt: skip
    t.night(t1="transport a b", t2="transport b c", x="consult a", y="consult b", z="consult c")
    # a <-> b, then b <-> c: who goes to a meets b, who goes to b meets c, who goes to c meets a.
    assert [t.found(n) for n in "xyz"] == ["Mayor", "Spy", "Citizen"]


def test_the_order_of_transports_matters_and_is_by_seat(town):
    t = town(t1="Transporter", t2="Transporter", a="Citizen", b="Mayor", c="Spy", x="Consigliere", y="Consigliere",
             z="Consigliere")  # fmt: skip
    t.night(t1="transport b c", t2="transport a b", x="consult a", y="consult b", z="consult c")
    # b <-> c, then a <-> b: at b's house is c by then, so who goes to a meets c, to b meets a, to c meets b.
    assert [t.found(n) for n in "xyz"] == ["Spy", "Citizen", "Mayor"]
    assert t.of_kind("moves")[0].data["pairs"] == [[3, 4], [2, 3]]


def test_two_equal_transports_undo_each_other(town):
    t = town(t1="Transporter", t2="Transporter", a="Citizen", b="Citizen", m="Mafioso")
    assert t.night(t1="transport a b", t2="transport b a", m="kill a").dead == {"a"}


def test_one_who_is_led_to_oneself_acts_on_oneself(town):
    t = town(tr="Transporter", v="Vigilante", x="Citizen", look="Lookout")
    t.night(tr="transport v x", v="shoot x", look="watch x")
    assert t.dead == {"v"}
    assert t.found("look") == ["tr"]


def test_the_transporter_can_be_among_those_it_moves(town):
    t = town(tr="Transporter", x="Citizen", m="Mafioso")
    assert t.options("tr") == {"transport": [["tr", "x", "m"], ["tr", "x", "m"]]}
    assert t.night(tr="transport tr x", m="kill tr").dead == {"x"}


def test_what_one_does_to_oneself_is_not_moved(town):
    t = town(tr="Transporter", s="Survivor", x="Citizen", m="Mafioso")
    assert t.night(tr="transport s x", s="vest", m="kill x").dead == set()
    assert t.told("s") == ["transported", "defended"]


def test_findings_are_told_of_the_player_who_was_named(town):
    t = town(tr="Transporter", cop="Sheriff", x="Citizen", m="Mafioso")
    t.night(tr="transport x m", cop="interrogate x")
    (event,) = t.of_kind("result")
    assert (event.data["target"], event.data["suspicious"]) == (t.seat("x"), True)


def test_the_transporter_visits_both(town):
    t = town(tr="Transporter", a="Citizen", b="Citizen", l1="Lookout", l2="Lookout")
    t.night(tr="transport a b", l1="watch a", l2="watch b")
    assert t.found("l1") == ["tr"]
    assert t.found("l2") == ["tr"]


def test_transports_lead_the_witch_astray(town):
    t = town(tr="Transporter", w="Witch", v="Vigilante", x="Citizen", y="Citizen")
    t.night(tr="transport v x", w="control x y")
    assert t.dead == {"y"}
    assert "controlled" in t.told("v")


# --- the Witch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["Transporter", "Veteran", "Witch"])
def test_some_cannot_be_controlled_and_notice(town, role):
    t = town(w="Witch", v=role, x="Citizen", y="Citizen")
    t.night(w="control v x")
    assert t.told("w") == ["control_failed"]
    assert t.told("v") == ["control_resisted"]


def test_a_witch_who_goes_to_a_veteran_on_alert_is_shot(town):
    t = town(w="Witch", v="Veteran", x="Citizen")
    t.night(w="control v x", v="alert")
    assert t.dead == {"w"}
    assert t.causes("w") == ["a Veteran"]


def test_a_witch_forces_one_who_had_chosen_nothing(town):
    t = town(w="Witch", v="Vigilante", x="Citizen")
    t.night(w="control v x")
    assert t.dead == {"x"}
    assert t["v"].uses["shoot"] == 2
    assert t.told("v") == ["controlled", "guilt"]


def test_a_witch_forces_one_who_had_chosen_otherwise(town):
    t = town(w="Witch", sk="Serial Killer", x="Citizen", y="Citizen")
    assert t.night(w="control sk x", sk="stab y").dead == {"x"}


def test_a_witch_can_draw_an_attack_to_herself(town):
    t = town(w="Witch", sk="Serial Killer", x="Citizen")
    t.night(w="control sk w", sk="stab x")
    assert t.dead == set()
    assert t.told("w") == ["defended"]


def test_a_witch_cannot_force_what_could_not_be_done(town):
    t = town(day=1, w="Witch", v="Vigilante", wolf="Werewolf", x="Citizen")
    assert t.night(w="control v x").dead == set()
    t = town(day=3, w="Witch", wolf="Werewolf", x="Citizen")
    assert t.night(w="control wolf x").dead == set()
    t = town(w="Witch", v="Vigilante", x="Citizen")
    t["v"].uses["shoot"] = 0
    assert t.night(w="control v x").dead == set()


def test_controlled_in_vain_one_does_what_one_had_chosen(town):
    t = town(w="Witch", s="Survivor", x="Citizen", m="Mafioso")
    t.night(w="control s x", s="vest", m="kill s")
    assert t.dead == set()
    assert t.told("s") == ["controlled", "defended"]


def test_of_two_witches_the_later_seat_prevails(town):
    t = town(w1="Witch", w2="Witch", v="Vigilante", x="Citizen", y="Citizen")
    assert t.night(w1="control v x", w2="control v y").dead == {"y"}
    assert t.told("v").count("controlled") == 1


def test_the_witch_learns_roles_only_by_its_switch(town):
    t = town(w="Witch", v="Vigilante", x="Citizen")
    assert t.night(w="control v x").found("w") is None
    t = town(rules=rule_set("classic", {"witch_learns_role": True}), w="Witch", v="Vigilante", x="Citizen")
    assert t.night(w="control v x").found("w") == "Vigilante"


def test_the_witch_has_basic_defense_until_first_attacked(town):
    t = town(w="Witch", sk="Serial Killer", x="Citizen")
    assert t.night(sk="stab w").dead == set()
    assert t.next_night(sk="stab w").dead == {"w"}


def test_the_witchs_defense_holds_all_of_the_night_in_which_it_breaks(town):
    t = town(w="Witch", sk="Serial Killer", m="Mafioso", x="Citizen")
    assert t.night(sk="stab w", m="kill w").dead == set()


def test_one_blocker_is_forced_onto_another_player(town):
    t = town(w="Witch", e="Escort", cop="Sheriff", m="Mafioso", x="Citizen")
    t.night(w="control e cop", e="block m", m="kill x", cop="interrogate m")
    assert t.dead == {"x"}
    assert t.told("cop") == ["blocked"]
    assert t.found("cop") is None


# --- the Mafia's kill --------------------------------------------------------------------------


def test_the_mafioso_goes_for_the_godfather(town):
    t = town(boss="Godfather", m="Mafioso", x="Citizen", y="Citizen", look="Lookout")
    t.night(boss="kill x", m="kill y", look="watch x")
    assert t.dead == {"x"}
    assert t.found("look") == ["m"]
    assert t.told("m") == ["ordered"]


def test_a_mafioso_who_waits_goes_for_the_godfather_too(town):
    t = town(boss="Godfather", m="Mafioso", x="Citizen", look="Lookout")
    t.night(boss="kill x", look="watch x")
    assert t.dead == {"x"}
    assert t.found("look") == ["m"]


def test_the_mafioso_chooses_when_the_godfather_waits_or_is_in_jail(town):
    t = town(j="Jailor", boss="Godfather", m="Mafioso", x="Citizen", y="Citizen")
    assert t.night(m="kill y").dead == {"y"}
    assert t.next_night(jail="boss", m="kill x").dead == {"x"}


def test_the_godfather_goes_itself_when_no_mafioso_can(town):
    t = town(j="Jailor", boss="Godfather", m="Mafioso", x="Citizen", look="Lookout")
    t.night(jail="m", boss="kill x", look="watch x")
    assert t.dead == {"x"}
    assert t.found("look") == ["boss"]


def test_blocking_the_one_who_goes_stops_the_kill(town):
    t = town(boss="Godfather", m="Mafioso", e="Escort", x="Citizen")
    assert t.night(boss="kill x", e="block m").dead == set()


def test_blocking_the_godfather_who_gave_an_order_does_not(town):
    t = town(boss="Godfather", m="Mafioso", e="Escort", x="Citizen")
    assert t.night(boss="kill x", e="block boss").dead == {"x"}


def test_a_controlled_mafioso_is_the_kill(town):
    t = town(w="Witch", boss="Godfather", m="Mafioso", x="Citizen", y="Citizen")
    assert t.night(w="control m y", boss="kill x", m="kill x").dead == {"y"}


def test_a_controlled_godfather_sends_the_mafioso(town):
    t = town(w="Witch", boss="Godfather", m="Mafioso", x="Citizen", y="Citizen", look="Lookout")
    t.night(w="control boss y", boss="kill x", look="watch y")
    assert t.dead == {"y"}
    assert t.found("look") == ["m"]


def test_several_mafiosi_kill_one_player_together(town):
    t = town(m1="Mafioso", m2="Mafioso", x="Citizen", y="Citizen", z="Citizen")
    assert t.night(m1="kill x", m2="kill y").dead == {"x"}
    assert t.next_night(m2="kill y").dead == {"y"}


# --- blocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["Escort", "Consort", "Transporter", "Veteran", "Witch"])
def test_some_cannot_be_blocked_and_notice(town, role):
    t = town(e="Escort", v=role, x="Citizen")
    t.night(e="block v")
    assert t.told("v") == ["block_resisted"]


def test_the_blocked_use_nothing_up(town):
    t = town(e="Escort", s="Survivor", ret="Retributionist", d="Citizen", e2="Escort", m="Mafioso").kill("d")
    t.night(e="block s", e2="block ret", s="vest", ret="raise d", m="kill s")
    assert t.dead == {"s"}
    assert t["s"].uses["vest"] == 4
    assert t["ret"].uses["raise"] == 1
    assert not t["d"].alive


def test_a_blocked_serial_killer_stabs_all_who_blocked_it_in_place_of_its_target(town):
    t = town(e1="Escort", e2="Consort", sk="Serial Killer", x="Citizen")
    t.night(e1="block sk", e2="block sk", sk="stab x")
    assert t.dead == {"e1", "e2"}
    assert t.told("sk") == ["struck_back"]


def test_a_blocked_werewolf_mauls_its_visitors_on_even_nights(town):
    t = town(e="Escort", cop="Sheriff", wolf="Werewolf", x="Citizen")
    t.night(e="block wolf", cop="interrogate wolf", wolf="maul x")
    assert t.dead == {"e", "cop"}
    t = town(day=3, e="Escort", wolf="Werewolf", x="Citizen")
    assert t.night(e="block wolf").dead == set()


def test_a_blocked_spy_learns_nothing(town):
    t = town(e="Escort", spy="Spy", m="Mafioso", x="Citizen")
    assert t.night(e="block spy", m="kill x").found("spy") is None


def test_a_blocked_vampire_hunter_still_strikes_who_comes(town):
    t = town(e="Escort", vh="Vampire Hunter", vamp="Vampire", v2="Vampire")
    t.night(e="block vh", v2="bite vh")
    assert t.dead == {"v2"}


def test_two_who_cannot_be_blocked_block_others_at_once(town):
    t = town(e="Escort", c="Consort", v="Vigilante", x="Citizen")
    t.night(e="block c", c="block v", v="shoot x")
    assert t.dead == set()


# --- protection --------------------------------------------------------------------------------


def test_a_doctor_is_told_that_its_patient_was_attacked(town):
    t = town(doc="Doctor", x="Citizen", m="Mafioso")
    t.night(doc="heal x", m="kill x")
    assert t.dead == set()
    assert (t.told("doc"), t.told("x"), t.told("m")) == (["target_attacked"], ["healed"], ["too_strong"])


def test_a_doctor_heals_itself_once(town):
    t = town(doc="Doctor", m="Mafioso", x="Citizen")
    assert t.options("doc") == {"heal": [["m", "x"]], "heal_self": []}
    assert t.night(doc="heal_self", m="kill doc").dead == set()
    assert t.options("doc") == {"heal": [["m", "x"]]}


def test_a_revealed_mayor_cannot_be_healed(town):
    t = town(doc="Doctor", m="Mafioso", mayor="Mayor", tr="Transporter", x="Citizen")
    t["mayor"].revealed = True
    assert t.options("doc")["heal"] == [["m", "tr", "x"]]
    assert t.night(tr="transport mayor x", doc="heal x", m="kill x").dead == {"mayor"}


def test_healing_saves_from_powerful_attacks(town):
    t = town(doc="Doctor", cop="Sheriff", vet="Veteran")
    t.night(doc="heal cop", cop="interrogate vet", vet="alert")
    assert t.dead == set()
    assert t.told("cop") == ["healed"]


def test_healing_does_not_help_against_fire(town):
    t = town(doc="Doctor", fire="Arsonist", x="Citizen")
    t["x"].doused = True
    t.night(doc="heal x", fire="ignite")
    assert t.dead == {"x"}
    assert t.causes("x") == ["an Arsonist"]
    assert t.told("doc") == ["target_attacked"]


def test_a_bodyguard_takes_the_attack_and_strikes_back(town):
    t = town(bg="Bodyguard", x="Citizen", m="Mafioso")
    t.night(bg="guard x", m="kill x")
    assert t.dead == {"bg", "m"}
    assert (t.causes("bg"), t.causes("m")) == (["the Mafia"], ["a Bodyguard"])
    assert t.told("x") == ["guarded"]
    assert t.told("bg") == ["fought"]


def test_a_healed_bodyguard_lives_and_so_does_a_healed_attacker(town):
    t = town(bg="Bodyguard", x="Citizen", m="Mafioso", d1="Doctor", d2="Doctor")
    assert t.night(bg="guard x", m="kill x", d1="heal bg", d2="heal m").dead == set()


def test_a_bodyguard_takes_the_first_of_several_attackers(town):
    t = town(bg="Bodyguard", x="Citizen", sk="Serial Killer", m="Mafioso")
    t.night(bg="guard x", sk="stab x", m="kill x")
    assert t.dead == {"bg", "m", "x"}
    assert t.causes("x") == ["a Serial Killer"]


def test_two_bodyguards_take_one_attacker_each(town):
    t = town(b1="Bodyguard", b2="Bodyguard", x="Citizen", sk="Serial Killer", m="Mafioso")
    assert t.night(b1="guard x", b2="guard x", sk="stab x", m="kill x").dead == {"b1", "b2", "sk", "m"}


def test_one_attacker_is_fought_by_one_bodyguard(town):
    t = town(b1="Bodyguard", b2="Bodyguard", x="Citizen", m="Mafioso")
    assert t.night(b1="guard x", b2="guard x", m="kill x").dead == {"b1", "m"}


@pytest.mark.parametrize("attacker", ["Serial Killer", "Werewolf"])
def test_a_bodyguards_blow_exceeds_basic_defense(town, attacker):
    verb = {"Serial Killer": "stab", "Werewolf": "maul"}[attacker]
    t = town(bg="Bodyguard", x="Citizen", k=attacker)
    assert t.night(bg="guard x", k=f"{verb} x").dead == {"bg", "k"}


def test_a_vampires_bite_at_a_bodyguard_kills(town):
    t = town(bg="Bodyguard", x="Citizen", v="Vampire")
    assert t.night(bg="guard x", v="bite x").dead == {"bg", "v"}
    assert t["x"].role.name == "Citizen"


def test_bodyguards_do_not_help_against_being_shot_on_a_visit(town):
    t = town(bg="Bodyguard", cop="Sheriff", vet="Veteran")
    assert t.night(bg="guard cop", cop="interrogate vet", vet="alert").dead == {"cop"}


def test_bodyguards_do_not_help_against_execution_or_fire(town):
    t = town(bg="Bodyguard", j="Jailor", x="Mafioso")
    assert t.night(jail="x", bg="guard x", j="execute x").dead == {"x"}
    t = town(bg="Bodyguard", fire="Arsonist", x="Citizen")
    t["x"].doused = True
    assert t.night(bg="guard x", fire="ignite").dead == {"x"}


def test_a_bodyguard_wears_its_vest_once_and_then_guards_nobody(town):
    t = town(bg="Bodyguard", m="Mafioso", x="Citizen")
    assert t.night(bg="vest", m="kill bg").dead == set()
    assert t.options("bg") == {"guard": [["m", "x"]]}


def test_a_vest_does_not_help_against_a_powerful_attack(town):
    t = town(s="Survivor", wolf="Werewolf", x="Citizen")
    assert t.night(s="vest", wolf="maul s").dead == {"s"}


def test_a_survivor_has_four_vests(town):
    t = town(s="Survivor", m="Mafioso", x="Citizen")
    for _ in range(4):
        assert t.next_night(s="vest", m="kill s").dead == set()
    assert t.options("s") == {}
    assert t.next_night(m="kill s").dead == {"s"}


# --- attacks -----------------------------------------------------------------------------------


def test_killers_who_are_killed_have_still_struck(town):
    t = town(v1="Vigilante", m="Mafioso", x="Citizen")
    assert t.night(v1="shoot m", m="kill v1").dead == {"v1", "m"}


def test_all_causes_of_a_death_are_told(town):
    t = town(sk="Serial Killer", m="Mafioso", x="Citizen", v="Vigilante")
    t.night(sk="stab x", m="kill x", v="shoot x")
    assert t.causes("x") == ["the Mafia", "a Vigilante", "a Serial Killer"]


def test_the_veteran_shoots_all_who_visit_it(town):
    t = town(vet="Veteran", m="Mafioso", cop="Sheriff", tr="Transporter", x="Citizen")
    t.night(vet="alert", m="kill vet", cop="interrogate vet", tr="transport vet x")
    # The Transporter comes to the Veteran's house; who else goes there meets the one whom it swapped.
    assert t.dead == {"tr", "x"}


def test_the_veteran_learns_how_many_it_shot_at(town):
    t = town(vet="Veteran", m="Mafioso", cop="Sheriff", x="Citizen")
    t.night(vet="alert", m="kill vet", cop="interrogate vet")
    assert t.dead == {"m", "cop"}
    (event,) = [e for e in t.of_kind("told") if e.data["code"] == "alerted"]
    assert event.data["number"] == 2
    assert t["vet"].uses["alert"] == 2


def test_the_veteran_has_no_defense_without_alert(town):
    t = town(vet="Veteran", m="Mafioso", x="Citizen")
    assert t.night(m="kill vet").dead == {"vet"}


def test_the_vigilante_does_not_shoot_in_the_first_night(town):
    t = town(day=1, v="Vigilante", x="Citizen")
    assert t.options("v") == {}


def test_a_vigilante_who_kills_town_dies_of_guilt_in_the_next_night(town):
    t = town(v="Vigilante", x="Citizen", doc="Doctor", j="Jailor", y="Citizen")
    assert t.night(v="shoot x").dead == {"x"}
    assert t.told("v") == ["guilt"]
    t.state.day = 3
    assert t.options("v") == {}
    t.night(jail="v", doc="heal v")
    assert t.dead == {"v"}
    assert t.causes("v") == ["guilt"]


def test_a_vigilante_who_kills_a_criminal_feels_nothing(town):
    t = town(v="Vigilante", m="Mafioso", x="Citizen")
    t.night(v="shoot m")
    assert t.told("v") == []
    assert t.next_night().dead == set()


def test_a_vigilante_who_shoots_town_in_vain_feels_nothing(town):
    t = town(v="Vigilante", x="Citizen", doc="Doctor")
    t.night(v="shoot x", doc="heal x")
    assert t.next_night().dead == set()


def test_a_vigilante_who_kills_the_bodyguard_in_between_feels_guilt(town):
    t = town(v="Vigilante", x="Mafioso", bg="Bodyguard", doc="Doctor")
    t.night(v="shoot x", bg="guard x", doc="heal v")
    assert t.dead == {"bg"}
    assert t.next_night().dead == {"v"}


def test_the_werewolf_mauls_its_target_and_all_who_visit_it(town):
    t = town(wolf="Werewolf", x="Citizen", doc="Doctor", look="Lookout", y="Citizen")
    t.night(wolf="maul x", doc="heal x", look="watch x")
    assert t.dead == {"doc", "look"}
    assert t.told("x") == ["healed"]


def test_the_werewolf_hunts_on_even_nights_only(town):
    assert town(day=1, wolf="Werewolf", x="Citizen").options("wolf") == {}
    assert town(day=2, wolf="Werewolf", x="Citizen").options("wolf") == {"maul": [["x"]]}


def test_a_werewolf_that_waits_mauls_its_visitors(town):
    t = town(wolf="Werewolf", cop="Sheriff", x="Citizen")
    assert t.night(cop="interrogate wolf").dead == {"cop"}
    t = town(day=3, wolf="Werewolf", cop="Sheriff", x="Citizen")
    assert t.night(cop="interrogate wolf").dead == set()


def test_a_werewolf_that_hunts_elsewhere_leaves_its_own_visitors_alone(town):
    t = town(wolf="Werewolf", cop="Sheriff", x="Citizen")
    assert t.night(wolf="maul x", cop="interrogate wolf").dead == {"x"}


def test_fire_takes_all_who_are_doused(town):
    t = town(fire="Arsonist", a="Citizen", b="Godfather", c="Citizen", d="Veteran")
    t.night(fire="douse a")
    t.next_night(fire="douse b")
    assert t.told("b") == ["doused"]
    t.next_night(fire="ignite", d="alert")
    assert t.dead == {"a", "b"}


def test_the_doused_are_not_told_by_the_switch(town):
    t = town(rules=rule_set("classic", {"doused_are_told": False}), fire="Arsonist", a="Citizen")
    assert t.night(fire="douse a").told("a") == []


def test_tonights_dousing_burns_too_and_an_arsonist_may_burn_itself(town):
    t = town(f1="Arsonist", f2="Arsonist", x="Citizen")
    t["f1"].doused = True
    t.night(f1="ignite", f2="douse x")
    assert t.dead == {"f1", "x"}


def test_an_idle_arsonist_washes(town):
    t = town(f1="Arsonist", x="Citizen", e="Escort")
    t["f1"].doused = True
    t.night(e="block f1")
    assert t["f1"].doused
    t.next_night()
    assert not t["f1"].doused
    assert t.told("f1") == ["washed"]


def test_a_jester_haunts_one_of_those_who_wanted_it_in_the_next_night_only(town):
    t = town(jest="Jester", a="Citizen", b="Citizen", doc="Doctor")
    t.lynch("jest", guilty=("a", "b"))
    assert t["jest"].won
    assert t.options("jest") == {"haunt": [["a", "b"]]}
    t.night(jest="haunt a", doc="heal a")
    assert t.dead == {"a"}
    assert t.causes("a") == ["a Jester's ghost"]
    assert [e.data for e in t.of_kind("haunted")] == [{"player": t.seat("a")}]
    t.state.day = 3
    assert t.options("jest") == {}


def test_a_jester_who_forgoes_its_haunting_has_no_other(town):
    t = town(jest="Jester", a="Citizen", b="Citizen")
    t.lynch("jest", guilty=("a",))
    assert t.night().dead == set()
    t.state.day = 3
    assert t.options("jest") == {}


def test_a_jester_killed_at_night_has_not_won(town):
    t = town(jest="Jester", m="Mafioso", a="Citizen")
    assert t.night(m="kill jest").dead == {"jest"}
    assert not t["jest"].won
    assert t.options("jest") == {}
