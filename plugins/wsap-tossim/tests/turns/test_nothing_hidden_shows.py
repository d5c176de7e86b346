"""Two games that differ only in what a player can't know show it the same, byte by byte.

A fact is changed in one of two games, or done in one alone; whoever can't know it is then compared at
each of its turns: text, data, what it can do, the step, what tools say, and the order of what it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pytest
from turn_kit import Scene, town_with

from wsap_core.protocol import Action
from wsap_core.protocol.wire import encode
from wsap_tossim.engine.data.model import WAIT, Choice
from wsap_tossim.engine.game import Game
from wsap_tossim.options import seat_name
from wsap_tossim.perception.desk import look_up
from wsap_tossim.verbs import TOOLS
from wsap_tossim.world import Town

ROLES = [
    *("Sheriff", "Lookout", "Citizen", "Citizen", "Jailor", "Medium", "Godfather", "Mafioso", "Framer"),
    *("Serial Killer", "Citizen", "Citizen"),
]
LOOKS = [name for name in TOOLS if name not in ("write_will", "write_death_note", "notebook", "summarise_day")]


def history(scene: Scene, player: int, until: tuple[int, str]) -> list[str]:
    """Return everything that a player is shown at its turns up to a phase, in the order in which it comes."""
    game, number = scene.game, player - 1
    town = town_with(game, scene.options, scene.seed)  # before its first round
    found: list[str] = []
    live = town.game
    while not live.over and (live.state.day, live.phase.value) != until:
        here = (live.state.day, live.phase.value)
        if number in live.waiting:
            found += list(everything(town, player))
        for writer, what, text in scene.writings.pop(here, []):
            assert not live.write(writer - 1, what, text)
        choices = {n: scene.next_choice(*here, n + 1) for n in live.waiting}
        turn(town, choices)
    assert not live.over, live.ending
    return [*found, *everything(town, player)]


def turn(town: Town, choices: dict[int, Choice]) -> None:
    """Carry out a round as the world does when all have acted."""
    from wsap_tossim.verbs import to_action

    actions = {seat_name(n): to_action(c, town.names) for n, c in choices.items()}
    town._resolve(actions)


def everything(town: Town, player: int) -> Iterator[str]:
    """Give what a player is shown now, and what each tool would tell it."""
    seat = seat_name(player - 1)
    seen = town.observation(seat)
    yield seen.to_text()
    yield json.dumps(encode(seen), sort_keys=True)
    knows = town.knowledge(player - 1)
    for tool in LOOKS:
        (kind,) = TOOLS[tool][1] or ("",)
        given: dict[str, Sequence[object]] = {"player": town.names, "role": ["Sheriff"], "day": range(1, knows.day + 1)}
        for value in given.get(kind, [""]):
            yield look_up(tool, {kind: value}, knows, town.names, town.game.options(player - 1))


def roles_with(*changed: tuple[int, str]) -> list[str]:
    roles = list(ROLES)
    for player, role in changed:
        roles[player - 1] = role
    return roles


def scene(roles: list[str] = ROLES, **options: object) -> Scene:
    return Scene(*roles, hidden=True, **options)


def told(a: Scene, b: Scene, player: int, until: tuple[int, str] = (3, "discussion")) -> None:
    one, other = history(a, player, until), history(b, player, until)
    assert len(one) == len(other), f"player {player} is asked at other times"
    for first, second in zip(one, other, strict=True):
        assert first == second


Make = Callable[[], tuple[Scene, Scene]]


def plain(line: Callable[[Scene], object], roles: list[str] = ROLES, **options: object) -> Make:
    """Return a game in which something is done, and one in which it is not."""

    def make() -> tuple[Scene, Scene]:
        done = scene(roles, **options)
        line(done)
        return done, scene(roles, **options)

    return make


def instead(one: Callable[[Scene], object], other: Callable[[Scene], object], **options: object) -> Make:
    """Return two games, in which different things are done."""

    def make() -> tuple[Scene, Scene]:
        a, b = scene(**options), scene(**options)
        one(a)
        other(b)
        return a, b

    return make


def swapped(first: int, second: int, line: Callable[[Scene], object] = lambda s: None) -> Make:
    """Return two games in which two players have each other's role."""

    def make() -> tuple[Scene, Scene]:
        a = scene()
        b = scene(roles_with((first, ROLES[second - 1]), (second, ROLES[first - 1])))
        line(a)
        line(b)
        return a, b

    return make


FACTS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "the role of another": (swapped(1, 10), (3, 7)),
    "who the Jailor is": (swapped(5, 11), (1, 3, 7, 10)),
    "who the Medium is": (swapped(6, 12), (1, 5, 7, 10)),
    "who is of the Mafia": (swapped(8, 11), (1, 3, 5, 10)),
    "whether there is a Jailor, who is asked at dusk": (
        lambda: (scene(), scene(roles_with((5, "Citizen")))),
        (1, 2, 3, 7, 10),
    ),
    "whether the Mafia has anybody to talk to": (
        lambda: (scene(), scene(roles_with((7, "Citizen"), (9, "Citizen")))),
        (1, 2, 3, 5, 10),
    ),
    "whether the Jailor jails": (
        plain(lambda s: s.on(1, "dusk", 5, "jail 1").on(2, "dusk", 5, "jail 1")),
        (2, 3, 7, 10),
    ),
    "whom the Jailor jails": (
        instead(lambda s: s.on(1, "dusk", 5, "jail 1"), lambda s: s.on(1, "dusk", 5, "jail 2")),
        (3, 4, 7, 10),
    ),
    "what is said in jail": (
        instead(
            lambda s: s.on(1, "dusk", 5, "jail 1").on(1, "talk at night", 1, "say: I am the Sheriff."),
            lambda s: s.on(1, "dusk", 5, "jail 1").on(1, "talk at night", 5, "say: Who are you?"),
        ),
        (2, 3, 7, 10),
    ),
    "what the Mafia says": (plain(lambda s: s.on(1, "talk at night", 7, "say: Kill 3.")), (1, 3, 5, 10)),
    "how often the Mafia talks": (
        plain(lambda s: [s.on(1, "talk at night", n, *["say: Kill 3."] * 3) for n in (7, 8, 9)], night_talk_rounds=3),
        (1, 3, 5, 10),
    ),
    "a frame": (plain(lambda s: s.on(1, "night", 9, "frame 3")), (1, 3, 5, 10)),
    "what the Sheriff finds": (
        instead(lambda s: s.on(1, "night", 1, "interrogate 7"), lambda s: s.on(1, "night", 1, "interrogate 8")),
        (2, 3, 7, 8),
    ),
    "whom the Lookout watches": (plain(lambda s: s.on(1, "night", 2, "watch 7")), (1, 3, 7)),
    "which of the Mafia spoke for a kill": (
        instead(lambda s: s.on(1, "night", 7, "kill 3"), lambda s: s.on(1, "night", 8, "kill 3")),
        (1, 2, 4, 10),
    ),
    "a will of another": (plain(lambda s: s.writes(1, "discussion", 1, "will", "I am the Sheriff.")), (2, 3, 7)),
    "a death note": (plain(lambda s: s.writes(1, "discussion", 10, "note", "Boo!")), (1, 2, 7)),
    "a notebook": (plain(lambda s: s.writes(1, "discussion", 1, "notebook", "7 is strange.")), (2, 3, 7)),
    "the words of a whisper": (
        instead(
            lambda s: s.on(1, "discussion", 1, "whisper 2: I am the Sheriff."),
            lambda s: s.on(1, "discussion", 1, "whisper 2: Who are you, if I may ask?"),
        ),
        (3, 5, 7, 10),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_what_a_player_cannot_know_changes_nothing_that_it_is_shown(fact: str) -> None:
    make, players = FACTS[fact]
    for player in players:
        a, b = make()
        told(a, b, player)


def test_a_cleaned_role_and_the_will_with_it_are_hidden() -> None:
    def made(role: str, will: str) -> Scene:
        roles = roles_with((9, "Janitor"), (3, role))
        s = scene(roles).on(1, "night", 8, "kill 3").on(1, "night", 9, "clean 3")
        return s.writes(1, "discussion", 3, "will", will)

    for player in (1, 2, 7, 10):
        told(made("Doctor", "I am the Doctor."), made("Escort", "I am the Escort."), player)


def test_whether_a_will_was_forged_and_by_whom_is_hidden() -> None:
    text = "I am the Framer."

    def forged() -> Scene:
        roles = roles_with((9, "Forger"))
        return scene(roles).on(1, "night", 8, "kill 3").on(1, "night", 9, f"forge 3: {text}")

    def own() -> Scene:
        roles = roles_with((9, "Forger"))
        return scene(roles).on(1, "night", 8, "kill 3").writes(1, "discussion", 3, "will", text)

    for player in (1, 2, 5, 10):
        told(forged(), own(), player)


def test_a_douse_is_hidden_from_all_others() -> None:
    def made(target: int) -> Scene:
        return scene(roles_with((10, "Arsonist"))).on(1, "night", 10, f"douse {target}")

    for player in (1, 2, 7):
        told(made(3), made(4), player)


def test_closed_verdicts_are_hidden() -> None:
    def made(guilty: int, innocent: int) -> Scene:
        s = scene(open_verdicts=False)
        for voter in (1, 2, 3, 4, 5, 6, 7):
            s.on(2, "nomination", voter, "vote 12", *["wait"] * 3)
        return s.on(2, "judgement", guilty, "guilty").on(2, "judgement", innocent, "innocent")

    for player in (1, 5, 10, 12):
        told(made(3, 4), made(4, 3), player)


def test_a_lot_drawn_unseen_changes_no_lot_that_all_see() -> None:
    """An Executioner's target is drawn; with `floor=random` the order of the floor is, too."""

    def made(*roles: tuple[int, str]) -> Scene:
        return scene(roles_with(*roles), floor="random", seed=3)

    told(made((12, "Jester")), made((12, "Executioner")), 1)


def test_bids_that_do_not_win_are_hidden_and_so_is_whether_there_was_a_tie() -> None:
    """Player 4 has had the floor already, so that of two equal bids Player 3's is taken."""

    def made(*bids: tuple[int, str]) -> Scene:
        s = scene(floor="bids", seed=5).on(2, "discussion", 4, "bid_1", "speak: Good morning.")
        for player, level in bids:
            s.on(2, "discussion", player, *([] if player == 4 else ["wait"]), level)
        return s.on(2, "discussion", 3, "wait", "bid_3", "speak: And to you.")

    for player in (2, 3, 6, 10):
        told(made((1, "bid_1"), (4, "bid_3"), (12, "bid_2")), made((11, "bid_2")), player)


def test_how_much_somebody_has_whispered_is_hidden() -> None:
    def made(text: str) -> Scene:
        return scene(tokens_a_day=10).on(2, "discussion", 3, f"whisper 4: {text}")

    for player in (1, 2, 7, 12):
        told(made("Psst."), made("This takes all that I can say today......"[:40]), player)


def of_two(first: str, second: str, *, roles: tuple[tuple[int, str], ...], **options: object) -> tuple[Scene, Scene]:
    """Return two games; in the second, players 3 and 4 do on the second night what the other does in the first."""

    def made(third: str, fourth: str) -> Scene:
        s = scene(roles_with(*roles), **options).on(1, "night", 8, "kill 11").on(1, "night", 10, "stab 12")
        for line, player in ((third, 3), (fourth, 4)):
            phase = "talk at night" if line.startswith("say") else "night"
            s.on(2, phase, player, line)
        return s

    return made(first, second), made(second, first)


def test_which_amnesiac_remembers_what_is_hidden() -> None:
    both = ((3, "Amnesiac"), (4, "Amnesiac"), (11, "Doctor"), (12, "Escort"))
    for player in (1, 2, 7, 10):
        told(*of_two("remember 11", "remember 12", roles=both), player)


def test_who_of_two_that_are_not_named_speaks_is_hidden() -> None:
    mediums = ((3, "Medium"), (4, "Medium"), (6, "Citizen"))
    told(*of_two("say: Who shot you?", "say: Good evening.", roles=mediums), 11)
    mafia = ((3, "Janitor"), (4, "Consort"), (1, "Spy"))
    told(*of_two("say: I go.", "say: Don't.", roles=mafia, spy_hears_mafia=True), 1)


def test_who_of_two_killers_left_which_note_is_hidden() -> None:
    def made(*notes: str) -> Scene:
        s = scene(roles_with((3, "Serial Killer"), (4, "Serial Killer")))
        for player, text in zip((3, 4, 10), notes, strict=True):
            s.on(1, "night", player, "stab 12").writes(1, "discussion", player, "note", text)
        return s

    for player in (1, 5, 7):
        told(made("A", "B", "C"), made("C", "A", "B"), player)


@pytest.mark.parametrize("mates", [("Godfather", "Mafioso"), ("Vampire", "Vampire")])
def test_a_mate_in_jail_cannot_be_told_from_one_who_is_silent(mates: tuple[str, str]) -> None:
    """Not by being asked, either: of two, the one who is free can speak as in any night, and is not answered."""
    roles = roles_with((7, mates[0]), (8, mates[1]), (9, "Citizen"))

    def made(prisoner: int) -> Scene:
        return scene(roles).on(1, "dusk", 5, f"jail {prisoner}").on(1, "talk at night", 8, "say: Are you there?")

    told(made(7), made(3), 8, until=(2, "discussion"))


def test_a_mate_in_a_seance_cannot_be_told_from_one_who_is_silent() -> None:
    def made(living: int) -> Scene:
        s = scene(roles_with((9, "Citizen"))).on(1, "night", 10, "stab 6")
        return s.on(2, "dusk", 6, f"seance {living}").on(2, "talk at night", 8, "say: Are you there?")

    told(made(7), made(3), 8)


def test_each_dead_medium_holds_its_own_seance() -> None:
    s = scene(roles_with((3, "Medium"))).on(1, "night", 10, "stab 6").on(1, "night", 8, "kill 3")
    s.on(2, "dusk", 3, "seance 1").on(2, "dusk", 6, "seance 2")
    for player, words in ((3, "Beware of 8."), (6, "Beware of 10."), (1, "Who are you?"), (2, "I hear you.")):
        s.on(2, "talk at night", player, f"say: {words}")
    s.play(2, "night")
    said = [e for e in s.game.log if e.kind == "said"]
    heard = {n: [e.data["text"] for e in said if e.known_by >> n - 1 & 1] for n in range(1, 13)}
    assert heard.pop(1) == heard.pop(3) == ["Beware of 8.", "Who are you?"]
    assert heard.pop(2) == heard.pop(6) == ["Beware of 10.", "I hear you."]
    assert not any(heard.values())


def test_a_spy_in_jail_hears_nothing_of_the_mafia() -> None:
    def made(words: str) -> Scene:
        s = scene(roles_with((1, "Spy")), spy_hears_mafia=True).on(1, "dusk", 5, "jail 1")
        return s.on(1, "talk at night", 7, words)

    told(made("say: Kill 3."), made("wait"), 1)


def test_a_lot_that_is_drawn_unseen_changes_no_other_lot() -> None:
    """Who of the Mafia becomes Mafioso is drawn, and so is an Executioner's target."""

    def made(*roles: tuple[int, str]) -> Scene:
        return scene(roles_with((7, "Framer"), (8, "Consort"), (9, "Janitor"), *roles), seed=1)

    for seat in (2, 12):
        for player in (7, 8, 9):
            told(made((seat, "Jester")), made((seat, "Executioner")), player)
    told(made((2, "Jester"), (12, "Executioner")), made((2, "Executioner"), (12, "Executioner")), 12)


def test_what_the_dead_say_is_hidden_from_the_living() -> None:
    def made(words: str) -> Scene:
        s = scene(dead_talk=True).on(1, "night", 8, "kill 3").on(1, "night", 10, "stab 4")
        return s.on(2, "talk at night", 3, words)

    for player in (1, 5, 7):
        told(made("say: The Mafioso is 8."), made("wait"), player)


def test_achievements_that_tell_who_is_an_enemy_wait_for_the_end() -> None:
    def earned(accused: str) -> list[tuple[str, ...]]:
        s = scene(roles_with((12, accused)))
        for voter in (1, 2, 3, 4, 5, 6, 7):
            s.on(2, "nomination", voter, "vote 12")
        s.play(2, "judgement")
        town = s.town()
        turn(town, dict.fromkeys(town.game.waiting, WAIT))
        return [town._result(seat).achievements for seat in town.seats]

    assert earned("Jester") == earned("Escort")


def test_the_step_is_a_players_own_count_of_turns() -> None:
    s = scene()
    town = s.town()
    steps = []
    game = town.game
    while (game.state.day, game.phase.value) != (2, "discussion"):
        if 0 in game.waiting:
            steps.append(town.observation("player-1").step)
        turn(town, dict.fromkeys(game.waiting, WAIT))
    assert steps == list(range(len(steps)))
    assert game.round > len(steps)


def test_what_a_tool_writes_is_hidden_from_the_others() -> None:
    import asyncio

    def made(*actions: Action) -> Town:
        town = scene().town()

        async def use() -> None:
            seat = town.seat("player-1")
            await seat.observe()
            for action in actions:
                assert (await seat.act(action)).success

        asyncio.run(use())
        return town

    busy, idle = made(Action("roles"), Action("notebook", {"text": "7?"}), Action("write_will", {"text": "x"})), made()
    for town in (busy, idle):
        turn(town, {0: WAIT})
    for player in range(2, 13):
        assert list(everything(busy, player)) == list(everything(idle, player))


def test_a_game_is_the_same_with_the_same_seed() -> None:
    assert isinstance(scene().game, Game)
    told(scene(), scene(), 1)
