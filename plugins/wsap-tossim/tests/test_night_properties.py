"""What holds of any town, whatever its players choose."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from wsap_tossim.engine.data.model import Choice, Option, Phase, Verb
from wsap_tossim.engine.data.rules import RULE_SETS
from wsap_tossim.engine.data.state import State
from wsap_tossim.engine.death import lynch, set_up
from wsap_tossim.engine.night.abilities import dusk_options, night_options
from wsap_tossim.engine.night.resolution import resolve_night
from wsap_tossim.engine.roles.listed import ROLES


@st.composite
def casts(draw: st.DrawFn) -> list[str]:
    """Give role lists of 5 to 15 with each unique role at most once."""
    names = draw(st.lists(st.sampled_from(list(ROLES)), min_size=5, max_size=15))
    found: list[str] = []
    for name in names:
        found.append(name if not ROLES[name].unique or name not in found else "Citizen")
    return found


def any_choice(option: Option, rng: random.Random) -> Choice:
    targets: list[int] = []
    for slot in option.slots:
        free = [n for n in slot if n not in targets]
        if not free:
            return Choice(Verb.WAIT)
        targets.append(rng.choice(free))
    return Choice(option.verb, tuple(targets), "Forged." if option.text else "")


def by_day(state: State, rng: random.Random) -> None:
    state.phase = Phase.LAST_WORDS
    living = [p.number for p in state.players if p.alive]
    for p in state.players:
        if p.role.name == "Mayor" and p.alive and rng.random() < 0.3:
            p.revealed = True
    if living and rng.random() < 0.5:
        lynch(state, rng.choice(living), [n for n in living if rng.random() < 0.5])


def by_night(state: State, rng: random.Random) -> dict[int, Choice]:
    state.phase = Phase.NIGHT
    for p in state.players:
        p.blackmailed = False
        for option in dusk_options(state, p):
            if option.verb is Verb.JAIL and rng.random() < 0.8:
                state.prisoner = any_choice(option, rng).targets[0]
    choices = {}
    for p in state.players:
        options = night_options(state, p)
        if options and rng.random() < 0.9:
            choices[p.number] = any_choice(rng.choice(options), rng)
    resolve_night(state, choices)
    return choices


def check(state: State, begun: int, alive: list[bool]) -> None:
    """Hold the state and the last events against what must be."""
    deaths = [0] * len(state.players)
    for event in state.log[begun:]:
        data = event.data
        assert 0 <= event.known_by <= state.everyone
        if event.kind == "death":
            deaths[data["player"]] += 1
            assert data["causes"]
        elif event.kind in ("visits", "blocks", "controls", "protects", "deceives"):
            assert alive[data["player"]], f"the dead act: {event}"
            assert alive[data["target" if "target" in data else "victim"]], f"at the dead: {event}"
    for p in state.players:
        assert deaths[p.number] in (0, 1)
        if deaths[p.number]:
            assert alive[p.number]
            assert not p.alive
        if alive[p.number] and not p.alive:
            assert deaths[p.number] == 1
        assert all(left >= 0 for left in p.uses.values()), (p.role.name, p.uses)
        assert ROLES[p.role.name] is p.role
        if not p.alive:
            assert not any((p.framed, p.doused, p.blackmailed, p.guilt))
            assert p.death_day > 0
        if (
            state.rules.executioner_turns
            and p.alive
            and p.target is not None
            and p.role.name == "Executioner"
            and not p.won
        ):
            assert state.players[p.target].alive
    for name in ("Godfather", "Mafioso", "Jailor", "Werewolf"):
        assert len(state.with_role(name)) <= 1
    assert state.prisoner is None
    assert [e.number for e in state.log] == list(range(len(state.log)))


def live(cast: list[str], rules: str, seed: int) -> State:
    state = State(RULE_SETS[rules], [ROLES[name] for name in cast], seed)
    set_up(state)
    rng = random.Random(seed)
    for _ in range(7):
        begun, alive = len(state.log), [p.alive for p in state.players]
        by_night(state, rng)
        check(state, begun, alive)
        state.day += 1
        begun, alive = len(state.log), [p.alive for p in state.players]
        by_day(state, rng)
        check(state, begun, alive)
    return state


@given(casts(), st.sampled_from(sorted(RULE_SETS)), st.integers(0, 2**32))
def test_any_town_stays_sound(cast, rules, seed):
    live(cast, rules, seed)


@given(casts(), st.integers(0, 2**32))
def test_the_same_choices_and_seed_give_the_same_town(cast, seed):
    one, other = live(cast, "classic", seed), live(cast, "classic", seed)
    assert one.log == other.log
    assert one.to_json() == other.to_json()


@given(casts(), st.integers(0, 2**32))
def test_the_dead_have_nothing_to_choose_but_haunting_and_one_seance(cast, seed):
    state = live(cast, "classic", seed)
    for p in state.players:
        if not p.alive:
            assert {o.verb for o in night_options(state, p)} <= {Verb.HAUNT}
            assert {o.verb for o in dusk_options(state, p)} <= {Verb.SEANCE}
        for option in night_options(state, p):
            for slot in option.slots:
                assert slot
                for target in slot:
                    assert state.players[target].alive is (option.verb not in (Verb.RAISE, Verb.REMEMBER))


@given(casts(), st.integers(0, 2**32))
def test_every_death_by_night_comes_of_an_attack_that_kills(cast, seed):
    state = live(cast, "classic", seed)
    killed = {(e.day, e.data["target"]) for e in state.log if e.kind == "attacks" and e.data["kills"]}
    died = {(e.day, e.data["player"]) for e in state.log if e.kind == "death" and e.data["when"] == "night"}
    assert killed == died
    for event in state.log:
        if event.kind == "attacks" and "convert" not in event.data["how"]:
            assert event.data["kills"] is (event.data["attack"] > event.data["defense"])
