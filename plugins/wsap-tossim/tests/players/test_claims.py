"""What is said is understood, whoever says it, and nothing that is said can do harm."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_tossim.players.reading.claims import Said, named, read, read_will
from wsap_tossim.players.reading.notes import Clue
from wsap_tossim.players.reading.phrases import AGAINST, LINES, reason, say

NAMES = ("Ann", "Bo", "Cy", "Dana", "Player 4", "Mr. Will", "Ida")
ANN, BO, CY, DANA, FOUR, WILL = range(6)


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("I'm the doctor", "Doctor"),
        ("I am the Doctor.", "Doctor"),
        ("Look, I’m your real sheriff, folks!", "Sheriff"),
        ("im a lookout btw", "Lookout"),
        ("My role is Vampire Hunter.", "Vampire Hunter"),
        ("Claiming Escort.", "Escort"),
        ("Doctor here, I healed Bo.", "Doctor"),
        ("As the Investigator, I have to tell you something.", "Investigator"),
        ("I claim Medium", "Medium"),
        ("Fine. I was in jail. I am actually the serial killer", "Serial Killer"),
    ],
)
def test_a_role_claim_is_understood(text: str, role: str) -> None:
    assert [s.role for s in read(text, NAMES) if s.kind == "role"] == [role]


@pytest.mark.parametrize(
    "text",
    [
        "Player 4 is claiming to be the Doctor.",
        "Bo says he is the Sheriff.",
        "I'm not the Doctor.",
        "If I were the Doctor I would have healed Bo.",
        "If I'm the Doctor, who is Bo?",
        "Where is our Doctor?",
        "Bo was the Doctor.",
        "I think Bo is the Doctor.",
        "The Doctor should heal Dana tonight.",
        "Doctor, heal me.",
    ],
)
def test_what_is_said_of_others_is_no_claim_of_the_speaker(text: str) -> None:
    assert not [s for s in read(text, NAMES) if s.kind == "role"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("N2 investigated Dana: suspicious", Said("finding", DANA, "", 2, "suspicious")),
        ("Night 2: I checked Dana and she is suspicious.", Said("finding", DANA, "", 2, "suspicious")),
        ("I interrogated Bo: not suspicious.", Said("finding", BO, "", None, "clear")),
        ("I checked Bo, he isn't suspicious", Said("finding", BO, "", None, "clear")),
        ("N1: investigated Bo: innocent", Said("finding", BO, "", 1, "clear")),
        (
            "N3: investigated Cy: Framer, Vampire or Jester.",
            Said("finding", CY, "", 3, "group", ("Framer", "Vampire", "Jester")),
        ),
        ("I looked at Cy and got Godfather", Said("finding", CY, "Godfather", None, "role")),
        ("N2: watched Ann: visited by Bo and Mr. Will.", Said("finding", ANN, "", 2, "visitors", (), (BO, WILL))),
        ("N2: watched Ann: nobody came.", Said("finding", ANN, "", 2, "visitors")),
        ("N2 healed Player 4", Said("finding", FOUR, "", 2, "healed")),
        ("I roleblocked Dana last night.", Said("finding", DANA, "", None, "blocked")),
    ],
)
def test_a_finding_is_understood(text: str, said: Said) -> None:
    assert read(text, NAMES) == (said,)


def test_what_another_is_said_to_have_done_is_no_finding_of_the_speaker() -> None:
    assert not [s for s in read("Bo investigated Dana: suspicious", NAMES) if s.kind == "finding"]
    assert not [s for s in read("I didn't check Dana: suspicious", NAMES) if s.kind == "finding"]


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("I think Bo is lying.", "accuse", BO),
        ("Bo is mafia!", "accuse", BO),
        ("we should lynch Dana", "accuse", DANA),
        ("Vote Player 4, now.", "accuse", FOUR),
        ("I don't trust Cy.", "accuse", CY),
        ("Bo is not suspicious.", "trust", BO),
        ("I trust Dana: she has proved it.", "trust", DANA),
        ("Dana is confirmed.", "trust", DANA),
        ("Dana isn't innocent at all", "accuse", DANA),
        ("Bo, who are you?", "ask", BO),
        ("Cy, what's your role?", "ask", CY),
        ("Dana, please claim.", "ask", DANA),
    ],
)
def test_an_opinion_is_understood(text: str, kind: str, target: int) -> None:
    assert [(s.kind, s.target) for s in read(text, NAMES)] == [(kind, target)]


def test_a_will_is_read_line_by_line() -> None:
    will = "Doctor.\nN1: healed Bo.\nN2: sat in jail.\nN3: healed Cy.\nI suspect Dana."
    assert read_will(will, NAMES) == (
        Said("role", role="Doctor"),
        Said("finding", BO, "", 1, "healed"),
        Said("finding", CY, "", 3, "healed"),
        Said("accuse", DANA),
    )


def test_a_short_name_is_no_part_of_a_longer_word_or_number() -> None:
    names = tuple(f"Player {n}" for n in range(1, 16))
    assert named("Player 12 and player 1", names) == (11, 0)
    assert named("Bobby and Cyprus and Idaho", NAMES) == ()


def test_a_player_can_be_meant_by_its_number() -> None:
    assert [s.target for s in read("I suspect player 2.", NAMES)] == [BO]
    assert read("I suspect player 99.", NAMES) == ()


# --- what the scripted players say themselves ------------------------------------------------


def _lines(*keys: str) -> list[tuple[str, str]]:
    return [(key, line) for key in keys for line in LINES[key]]


@pytest.mark.parametrize(("key", "line"), _lines("accuse", "agree", "agree_short", "defend", "last_words_against"))
@pytest.mark.parametrize("code", sorted(AGAINST))
def test_an_accusation_is_understood_as_one_whatever_its_reason(key: str, line: str, code: str) -> None:
    why = reason(Clue(DANA, 1.0, code, CY, "Doctor"), NAMES)
    said = read(line.format(who="Dana", why=why, role="Lookout", log=""), NAMES)
    assert {s.target for s in said if s.kind == "accuse"} == {DANA}
    assert {s.role for s in said if s.kind == "role"} <= {"Lookout"}
    assert not [s for s in said if s.kind == "finding"]


@pytest.mark.parametrize(
    ("key", "line"), _lines("claim_log", "trial", "jail_answer", "last_words", "last_words_against", "defend_alone")
)
def test_a_claim_is_understood_as_one_with_the_nights_that_go_with_it(key: str, line: str) -> None:
    said = read(line.format(role="Doctor", log="N1: healed Bo. N2: healed Cy.", who="Dana", why=""), NAMES)
    assert [s.role for s in said if s.kind == "role"] == ["Doctor"]
    if "{log}" in line:
        assert [(s.target, s.night) for s in said if s.kind == "finding"] == [(BO, 1), (CY, 2)]


@pytest.mark.parametrize(
    ("key", "line"), _lines("hello", "ask_all", "nothing", "defend_again", "jester_odd", "jester_trial", "dead_idle")
)
def test_small_talk_says_nothing(key: str, line: str) -> None:
    assert not [s for s in read(line.format(day="3"), NAMES) if s.kind != "ask"]


@pytest.mark.parametrize(("key", "line"), _lines("ask"))
def test_a_question_is_understood_as_one(key: str, line: str) -> None:
    assert [(s.kind, s.target) for s in read(line.format(who="Bo"), NAMES)] == [("ask", BO)]


# --- untrusted text --------------------------------------------------------------------------


@given(st.text(max_size=400), st.lists(st.text(max_size=30), min_size=1, max_size=15, unique=True))
@settings(deadline=None)
@pytest.mark.slow
def test_nothing_that_is_said_can_make_reading_fail(text: str, names: list[str]) -> None:
    for said in (*read(text, names), *read_will(text, names)):
        assert said.target is None or 0 <= said.target < len(names)
        assert all(0 <= n < len(names) for n in said.players)


@given(
    st.lists(
        st.sampled_from(
            ["I'm", "the", "Doctor", "N2:", "N99999999999999999999", "healed", "Bo", "not", "is", ":", "claim", "²"]
        ),
        max_size=40,
    )
)
def test_nothing_made_of_the_words_that_are_looked_for_can_either(words: list[str]) -> None:
    read(" ".join(words), NAMES)
    read_will("\n".join(words), NAMES)


def test_a_very_long_text_is_read_only_in_part() -> None:
    assert len(read("I suspect Bo. " * 100_000, NAMES)) <= 40


def test_names_with_marks_for_filling_in_stay_as_they_are() -> None:
    text = say(random.Random(0), "accuse", 200, who="{role}", why="{0} %s")
    assert "{role}" in text
    assert "{0} %s" in text
