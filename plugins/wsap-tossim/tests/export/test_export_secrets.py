"""Nothing that a player could not know is in what is exported for it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wsap_tossim.engine.game import Game
from wsap_tossim.export.games import Wanted
from wsap_tossim.export.sources import source_of_record
from wsap_tossim.export.writing import write_chat, write_episodes
from wsap_tossim.knowledge import seen_by
from wsap_tossim.replay import Record

WORD = re.compile(r"\b[wt]\d+x\b")


def written(record: Record, *, episodes: bool = False, dialect: Any = "tags") -> dict[int, list[str]]:
    """Return the exported lines of each player."""
    file = io.StringIO()
    wanted = Wanted(dialect=dialect)
    sources = [source_of_record(record)]
    if episodes:
        write_episodes(sources, wanted, file, "none")
    else:
        write_chat(sources, wanted, file)
    found: dict[int, list[str]] = {n: [] for n in range(len(record.names))}
    for line in file.getvalue().splitlines():
        found[json.loads(line)["player"]].append(line)
    return found


def known_words(record: Record, player: int) -> set[str]:
    """Return the words that a player heard, read or made itself, from the log and the record alone."""
    heard = {w for e in seen_by(player, record.game.log) for w in WORD.findall(json.dumps(dict(e.data), default=list))}
    own = {w for e in record.game.record if e.player == player for w in WORD.findall(e.text)}
    return heard | own | {text for _, who, text in record.thoughts if who == player}


@pytest.mark.parametrize(("episodes", "dialect"), [(False, "tags"), (True, "tags"), (False, "json")])
@pytest.mark.slow
def test_a_players_lines_hold_no_word_that_it_never_heard(
    talk: Callable[..., Record], episodes: bool, dialect: str
) -> None:
    record = talk(5, "classic", "classic")
    secret = {w for e in record.game.log if e.kind in ("said", "whisper") for w in WORD.findall(e.data["text"])}
    assert secret, "the game has talk that not all hear"
    shown: set[str] = set()
    for player, lines in written(record, episodes=episodes, dialect=dialect).items():
        words = set(WORD.findall("\n".join(lines)))
        assert words <= known_words(record, player)
        shown |= words
    assert len(secret & shown) > len(secret) / 2, "those who heard it are shown it"


def other_word(record: Record, at: int) -> Record:
    """Return the same game with another word in one place of its record."""
    entries = list(record.game.record)
    entries[at] = entries[at]._replace(text="SECRET" + entries[at].text)
    game = Game(record.game.setup, record.game.rules, record.game.seed)
    game.repeat(entries)
    return replace(record, game=game)


def nameless(lines: list[str]) -> list[dict[str, Any]]:
    """Return the lines without the game's name, which is made from all of its record."""
    return [{k: v for k, v in json.loads(line).items() if k != "game"} for line in lines]


@pytest.mark.parametrize("verb", ["say", "whisper", "notebook"])
@pytest.mark.slow
def test_a_word_planted_in_secret_changes_nothing_for_those_who_do_not_hear_it(
    talk: Callable[..., Record], verb: str
) -> None:
    record = talk(5, "classic", "classic")
    at = next(n for n, e in enumerate(record.game.record) if e.verb == verb)
    planted = other_word(record, at)
    before, after = written(record), written(planted)
    hearers = [p for p in range(len(record.names)) if "SECRET" in str(list(seen_by(p, planted.game.log)))]
    assert 0 < len(hearers) < len(record.names)
    for player in range(len(record.names)):
        if player in hearers:
            assert "SECRET" in "".join(after[player])
        else:
            assert nameless(after[player]) == nameless(before[player])


@pytest.mark.slow
def test_a_word_said_in_jail_reaches_the_prisoner_and_the_jailor_alone(talk: Callable[..., Record]) -> None:
    for seed in range(30):
        record = talk(seed, "classic", "classic")
        said = next((e for e in record.game.log if e.kind == "said" and e.data["channel"] == "jail"), None)
        if said is not None:
            break
    else:  # pragma: no cover - the seeds are fixed
        pytest.fail("nobody was ever jailed")
    word = said.data["text"]
    with_it = {player for player, lines in written(record).items() if re.search(rf"\b{word}\b", "".join(lines))}
    assert with_it == {p for p in range(len(record.names)) if said.known_by >> p & 1}
    assert len(with_it) == 2


def test_a_mind_is_told_of_its_own_seat_alone(talk: Callable[..., Record]) -> None:
    record = talk(3, "five")
    record = replace(record, played_by=tuple(f"mind-{n}" for n in range(5)))
    for player, lines in written(record).items():
        assert set(re.findall(r"mind-\d", "".join(lines))) <= {f"mind-{player}"}
