"""A turn has its room: with everybody talking at length, what matters is still there."""

from __future__ import annotations

import asyncio
import random

from turn_kit import Scene, headings, section

from wsap_core.protocol import Action
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.options import seat_name
from wsap_tossim.perception.text_budget import cut, newest, shares

ROLES = ["Investigator", "Sheriff", "Doctor", "Lookout", "Escort", "Medium", *["Citizen"] * 6]
ROLES += ["Mafioso", "Godfather", "Framer"]
NAMES = [f"Bartholomew Featherstone {n + 11}" for n in range(15)]
CONFORMANCE = 8000


def talkative() -> Scene:
    """Return the sixth day of fifteen with long names, each of whom says 400 characters whenever it can."""
    scene = Scene(*ROLES, names=NAMES, deathless_days=20)
    game, rng = scene.game, random.Random(0)
    for writer in range(15):
        assert not game.write(writer, "will", f"{writer}: " + "w" * 990)
    while (game.state.day, game.phase.value) != (6, "nomination"):
        choices = {}
        for number in game.waiting:
            options = {o.verb: o for o in game.options(number)}
            choice = Choice(Verb.WAIT)
            if Verb.SPEAK in options:
                choice = Choice(Verb.SPEAK, (), f"{number} says " + "x" * 380)
            elif Verb.SAY in options:
                choice = Choice(Verb.SAY, (), "y" * 400)
            elif Verb.INVESTIGATE in options:
                choice = Choice(Verb.INVESTIGATE, (1 + game.state.day,))
            elif Verb.KILL in options and number == 12 and game.state.day > 3:
                choice = Choice(Verb.KILL, (rng.choice([n for n in options[Verb.KILL].slots[0] if n > 6]),))
            choices[number] = choice
        game.resolve(choices)
    return scene


def test_nothing_that_matters_is_cut_where_fifteen_talk_at_length() -> None:
    scene = talkative()
    town = scene.town()
    for player in range(15):
        text = town.observation(seat_name(player)).to_text()
        assert len(text) <= CONFORMANCE
        assert f"You are {NAMES[player]}, the {ROLES[player]}." in text
        assert len(section(text, "Player Roster")) == 15
        if player in scene.game.waiting:
            able = text.split("\n")[-1]
            assert able.startswith("You can now: speak, whisper (")
            assert able.endswith(" or wait.")
    text = town.observation(seat_name(0)).to_text()
    found = [line for line in section(text, "What You Alone Know") if "is one of these" in line]
    assert [line[:8] for line in found] == [f"Night {night}:" for night in range(1, 6)]
    assert "**Today's Live Chat:**" in headings(text)
    assert "the tool chat_history 6 tells them" in text


def test_what_is_left_out_can_be_read_page_by_page() -> None:
    town = talkative().town()
    asked = town.game.waiting[0]

    async def read() -> list[str]:
        seat = town.seat(seat_name(asked))
        await seat.observe()
        first = (await seat.act(Action("chat_history", {"day": 6}))).message
        pages = int(first.rpartition("page 1 of ")[2].split()[0])
        more = [Action("chat_history", {"day": f"6/{n}"}) for n in range(2, min(7, pages + 1))]
        return [first, *[(await seat.act(action)).message for action in more]]

    pages = asyncio.run(read())
    assert len(pages) > 2
    assert all(len(page) <= 2000 for page in pages)
    lines = [line for page in pages for line in page.split("\n") if not line.startswith("(")]
    heard = [e for e in town.knowledge(asked).events if e.day == 6 and e.kind == "speech"]
    assert [line.partition(":")[0] for line in lines] == [NAMES[e.data["player"]] for e in heard][: len(lines)]


def test_room_is_given_where_it_is_needed_and_shared_where_it_is_short() -> None:
    assert shares([10, 20], [1, 1], 100) == [10, 20]
    assert shares([10, 200, 300], [1, 1, 1], 110) == [10, 50, 50]
    assert shares([100, 100], [3, 1], 80) == [60, 20]
    assert shares([0, 5], [1, 1], 0) == [0, 0]


def test_the_newest_lines_are_whole_and_a_line_says_what_is_left_out() -> None:
    assert newest(["a", "b"], 100) == ["a", "b"]
    lines = [f"{n} " + "z" * 300 for n in range(20)]
    shown = newest(lines, 1500, "chat_history 2")
    assert shown[-1] == lines[-1]
    assert shown[0].endswith("earlier lines are left out here; the tool chat_history 2 tells them)")
    assert sum(map(len, shown)) < 1600


def test_a_quotation_that_is_shortened_stays_one() -> None:
    (line,) = cut(['Ann left the will: "' + "w" * 500 + '"'], 100)
    assert line.endswith('w..."')
    assert len(line) <= 100
    assert cut(["short", "z" * 200], 120)[0] == "short"


def test_a_summary_keeps_the_longest_that_was_said_whatever_seat_it_is_from() -> None:
    scene = Scene(*["Citizen"] * 13, "Sheriff", "Mafioso")
    for player in range(1, 14):
        scene.on(1, "discussion", player, "speak: Good morning to all of you.")
    scene.on(1, "discussion", 14, "speak: I am the Sheriff, and I shall tell each morning whom I looked at and why.")
    scene.on(1, "discussion", 15, "speak: I am a Citizen with nothing to hide; ask me whatever you would like to know.")
    (line,) = section(scene.play(2, "discussion", 3).text(3), "Chat Summaries")
    assert len(line) <= 510
    assert 'Player 14 said: "I am the Sheriff' in line
    assert line.index("Player 1 said") < line.index("Player 14 said") < line.index("Player 15 said")


def test_on_the_first_day_one_is_told_that_there_is_no_vote_unless_there_is() -> None:
    roles = ("Citizen", "Citizen", "Citizen", "Sheriff", "Mafioso")
    told = "The town discusses; there is no vote on the first day."
    assert told in Scene(*roles).text(1)
    assert told not in Scene(*roles, first_day="vote").text(1)
    assert told not in Scene(*roles).play(2, "discussion", 2).text(2)
