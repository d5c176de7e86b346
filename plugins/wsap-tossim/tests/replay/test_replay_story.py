"""What a page holds: of each view everything, and nothing beyond it."""

from __future__ import annotations

import html.parser
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import UsageError
from wsap_tossim.engine.data.events import EVENTS, TOLD
from wsap_tossim.engine.data.model import Event, Phase
from wsap_tossim.engine.game import Game
from wsap_tossim.knowledge import seen_by
from wsap_tossim.replay.event_lines import KINDS, line
from wsap_tossim.replay.page import embedded, page_of
from wsap_tossim.replay.story import Story, View, page_data, view_named

ANN, BOB, CID, DORA, EVE = range(5)
OPEN = {"OPEN-WORDS-OF-ANN", "WILL-OF-EVE", "DEFENSE-OF-BOB"}
SECRETS: dict[View, set[str]] = {
    "public": set(),
    ANN: {"ANSWER-IN-JAIL", "QUESTION-IN-JAIL", "THOUGHT-OF-ANN", "VERDICT-THOUGHT", "0.4321", "mind-of-ann"},
    BOB: {"WHISPER-OF-BOB", "PLAN-OF-THE-MAFIA", "THOUGHT-OF-BOB", "mind-of-bob"},
    CID: {"WHISPER-OF-BOB", "PLAN-OF-THE-MAFIA", "THOUGHT-OF-CID", "0.1234", "mind-of-cid"},
    DORA: {"ANSWER-IN-JAIL", "QUESTION-IN-JAIL", "THOUGHT-OF-DORA", "mind-of-dora"},
    EVE: {"NOTEBOOK-OF-EVE", "THOUGHT-OF-EVE", "mind-of-eve"},
}
"""Who knows which secret: written down from what happens in the game."""
EVERY_SECRET = set().union(*SECRETS.values())
VIEWS: list[View] = list(SECRETS)


def data_in(page: str) -> Any:
    """Return the data in a page, found as a browser finds it: up to the first end of a script."""
    found = re.search(r'<script type="application/json" id="game">(.*?)</script', page, re.DOTALL | re.IGNORECASE)
    assert found, "there is data"
    return json.loads(found[1])


@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize("view", VIEWS)
def test_a_page_for_one_view_has_what_it_knows_and_nothing_else(
    story: Callable[..., Story], view: View, over: bool
) -> None:
    page = page_of(story(over=over), view)
    assert {word for word in EVERY_SECRET | OPEN if word in page} == SECRETS[view] | OPEN
    data = data_in(page)
    assert not {"known", "speaker"} & {key for event in data["events"] for key in event}
    assert "attacks" not in {event["kind"] for event in data["events"]}
    assert {event["kind"] for event in data["events"]} <= set(EVENTS)


@pytest.mark.parametrize("view", VIEWS)
def test_roles_are_in_an_unfinished_game_only_for_those_who_know_them(story: Callable[..., Story], view: View) -> None:
    data = data_in(page_of(story(over=False), view))
    del data["factions"]  # the catalogue of all roles, the same in every game
    text = json.dumps(data)
    roles = {ANN: {"Sheriff"}, BOB: {"Godfather", "Mafioso"}, CID: {"Godfather", "Mafioso"}, DORA: {"Jailor"}}
    found = {r for r in ("Sheriff", "Godfather", "Mafioso", "Jailor", "Doctor") if f'"role": "{r}"' in text}
    mates = {r for r in ("Godfather", "Mafioso") if f'": "{r}"' in text}
    assert found | mates == ({"Doctor"} if view == EVE else roles.get(view, set()))


def test_the_page_for_all_views_has_everything(story: Callable[..., Story]) -> None:
    page = page_of(story(over=True))
    assert all(word in page for word in EVERY_SECRET | OPEN)
    data = data_in(page)
    assert len(data["events"]) == len(story(over=True).log)
    asked = next(e for e in data["events"] if e.get("text") == "QUESTION-IN-JAIL")
    assert asked["speaker"] == DORA, "who speaks in the jail is told to nobody but the reader of everything"


@pytest.mark.parametrize("view", VIEWS)
def test_what_one_can_not_know_leaves_no_trace(story: Callable[..., Story], view: View) -> None:
    """The Mafia talks otherwise and Eve has another role: for all who can't know it, the page is the same."""
    one = page_of(story(over=False), view)
    other = page_of(story(over=False, plan="something else entirely", doctor="Escort"), view)
    assert (one == other) == (view not in (BOB, CID, EVE))


@pytest.mark.parametrize("seed", range(6))
def test_events_of_a_view_are_those_of_the_players_projection(play: Callable[..., Any], seed: int) -> None:
    game, thoughts = play(seed, random.Random(seed).choice(["five", "nine", "classic", "vampires"]))
    names = [f"P{n}" for n in range(len(game.state.players))]
    for view in ("public", *range(len(names))):
        seen = list(seen_by(None if view == "public" else view, game.log))
        data = page_data(Story.of(game, names, thoughts), view)
        assert [(e["day"], e["phase"], e["kind"]) for e in data["events"]] == [e[:3] for e in seen]
        spoken = [e.data["text"] for e in seen if e.kind in ("speech", "whisper", "said")]
        assert [e["text"] for e in data["events"] if e["kind"] in ("speech", "whisper", "said")] == spoken


def test_a_vote_shows_how_the_votes_stand(story: Callable[..., Story]) -> None:
    events = page_data(story(over=True), "public")["events"]
    counts = [e["tally"]["counts"] for e in events if e["kind"] in ("vote", "unvote")]
    assert counts == [[[BOB, 1]], [[ANN, 1], [BOB, 1]], [[BOB, 1]], [[BOB, 2]], [[BOB, 3]]]
    assert {e["tally"]["needed"] for e in events if "tally" in e} == {3}


def test_a_mayors_vote_counts_three_as_soon_as_the_mayor_is_known() -> None:
    everyone = 0b11111
    rows: list[tuple[str, dict[str, Any]]] = [
        ("vote", {"player": 0, "target": 1, "weight": 1, "needed": 4}),
        ("revealed", {"player": 0}),
        ("vote", {"player": 2, "target": 1, "weight": 1, "needed": 4}),
    ]
    log = [Event(n, 1, Phase.NOMINATION, kind, everyone, data) for n, (kind, data) in enumerate(rows)]
    events = page_data(Story(log, ["a", "b", "c", "d", "e"]))["events"]
    assert [e["tally"]["counts"] for e in events] == [[[1, 1]], [[1, 3]], [[1, 4]]]


def test_a_thought_stands_beside_what_came_of_it(story: Callable[..., Story]) -> None:
    data = page_data(story(over=True))
    events = data["events"]
    beside = {t["text"]: events[t["beside"]] for t in data["thoughts"] if t["beside"] is not None}
    assert beside["THOUGHT-OF-ANN"]["text"] == "OPEN-WORDS-OF-ANN"
    assert beside["THOUGHT-OF-BOB"]["kind"] == "whisper", "the words, not only that there are some"
    assert beside["THOUGHT-OF-DORA"]["text"] == "QUESTION-IN-JAIL", "although the log doesn't name her"
    assert beside["THOUGHT-OF-EVE"]["kind"] == "chose"
    assert beside["VERDICT-THOUGHT"]["kind"] == "verdict"
    (alone,) = [t for t in data["thoughts"] if t["beside"] is None]
    assert (alone["text"], alone["day"], alone["phase"]) == ("THOUGHT-OF-CID", 1, "night")
    own = page_data(story(over=True), EVE)["thoughts"]
    assert [(t["text"], t["beside"], t["phase"]) for t in own] == [("THOUGHT-OF-EVE", None, "night")]


def test_a_thought_before_a_round_that_never_came_stands_at_the_end(play: Callable[..., Any]) -> None:
    game, thoughts = play(1, rounds=3)
    player = game.waiting[0]
    data = page_data(Story.of(game, "abcde", [*thoughts, (game.round, player, "next I will")]))
    assert data["thoughts"][-1]["before"] == len(data["events"])
    assert data["outcome"] is None


def test_a_view_is_named_by_word_name_or_number() -> None:
    names = ["Ann", "ann", "2", "Dora"]
    assert view_named("all", names) is None
    assert view_named("public", names) == "public"
    assert view_named("ann", names) == 1
    assert view_named("dora", names) == 3
    assert view_named("2", names) == 2, "a name goes before a number"
    assert view_named("1", names) == 0
    for wrong in ("ANN", "5", "0", "", "x" * 5000, "-1"):
        with pytest.raises(UsageError, match="There is no view"):
            view_named(wrong, names)


def test_names_and_minds_must_be_as_many_as_players(play: Callable[..., Any]) -> None:
    game, _ = play(1, rounds=1)
    with pytest.raises(UsageError, match="5 players; there are 2 names"):
        Story.of(game, ["a", "b"])
    with pytest.raises(UsageError, match="no player number 5"):
        page_data(Story.of(game, "abcde"), 5)


class Tags(html.parser.HTMLParser):
    """Counts the elements of a page as a browser's first stage does."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


HOSTILE = st.text(st.sampled_from("<>&\"'/!-\u2028\u2029\u202e\ud800\x00\n script=imgonerror]]>"), max_size=60)


@given(HOSTILE, HOSTILE, HOSTILE)
@pytest.mark.slow
def test_no_words_make_elements(name: str, said: str, mode: str) -> None:
    game = Game.from_json(_SHORT)
    log = [*game.log, Event(len(game.log), 1, Phase.DISCUSSION, "speech", game.log[0].known_by,
                            {"player": 0, "text": said + "</ScRiPt ><!--<script>"})]  # fmt: skip
    story = Story(log, [name, "b", "c", "d", "e"], mode, "classic", thoughts=(), played_by=[said] * 5)
    page = page_of(story)
    found, usual = Tags(), Tags()
    found.feed(page)
    usual.feed(page_of(Story(log[:-1], list("abcde"))))
    assert found.tags == usual.tags
    assert data_in(page)["names"][0] == name


_SHORT = {
    "format": 1, "mode": "five", "slots": ["Sheriff", "Doctor", "Citizen", "Citizen", "Mafioso"],
    "rules": {"name": "classic", "version": 1}, "seed": 1, "roles": None, "record": [],
}  # fmt: skip


def test_data_in_a_page_is_ascii_without_markup() -> None:
    text = embedded({"a": "</script>&\u2028\ud800é"})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script>&\u2028\ud800é"}


def test_every_kind_of_event_has_words(play: Callable[..., Any]) -> None:
    """No event of any game is left to the spelling of its data; names never are: players go in by number."""
    assert set(EVENTS) <= KINDS
    kinds = set()
    for seed in range(12):
        game, _ = play(seed, ["classic", "any", "vampires", "twelve"][seed % 4], rules=["classic", "older"][seed % 2])
        for event in game.log:
            said = line(event)
            assert (said is None) == (event.kind == "phase")
            if said is not None:
                sentence = "".join("@" if isinstance(p, int) else p for p in said.parts)
                assert event.kind in KINDS
                assert "{" not in sentence
                kinds.add(event.kind)
    assert len(kinds) > 20


@pytest.mark.parametrize("code", TOLD)
def test_what_a_player_feels_is_told_in_the_games_own_words(code: str) -> None:
    said = line(Event(0, 1, Phase.NIGHT, "told", 1, {"player": 0, "code": code, "target": 3, "number": 2}))
    assert said is not None
    words = "".join("Zoe" if p == 3 else "Ann" if p == 0 else str(p) for p in said.parts)
    assert words == f"Ann is told: “{TOLD[code].format(target='Zoe', number=2)}”"


def test_a_kind_that_is_not_known_is_spelled_out() -> None:
    said = line(Event(0, 1, Phase.NIGHT, "sneezes", 1, {"player": 0, "times": 2}))
    assert said is not None
    assert said.parts == (0, " sneezes times 2.")


def test_rounds_are_told_in_the_view_of_all_alone(story: Callable[..., Story]) -> None:
    """How many decisions there were would tell how many were made in secret."""
    told = replace(story(over=False), called="town.json", found_out=(ANN, CID))
    whole = page_data(told)
    assert whole["fork"] == {"called": "town.json", "rounds": len(told.starts)}
    assert whole["found_out"] == [ANN, CID]
    assert {e["round"] for e in whole["events"] if e.get("text") == "OPEN-WORDS-OF-ANN"} == {0}
    assert {e["round"] for e in whole["events"] if e.get("text") == "NOTEBOOK-OF-EVE"} == {2}, (
        "before a prisoner is taken"
    )
    for view, found_out in (("public", []), (ANN, [ANN]), (BOB, [])):
        data = page_data(told, view)
        assert data["fork"] is None
        assert data["found_out"] == found_out
        assert not any("round" in event for event in data["events"])
