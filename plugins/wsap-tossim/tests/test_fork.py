"""A game forked at any round has the same past to the letter, and whatever end is chosen."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.cli.app import run
from wsap_core.errors import UsageError
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import play_out, random_choice
from wsap_tossim.engine.rules import rule_set
from wsap_tossim.engine.setups import MODES, setup
from wsap_tossim.fork import forked, rounds_of
from wsap_tossim.replay import Record, load_record, save_record


def played(seed: int, mode: str = "five", rules: str = "quick") -> Game:
    """Return a game played by lot, with talk and papers."""
    game, rng = Game(setup(mode), rule_set(rules), seed), random.Random(seed)
    while not game.over:
        choices = {}
        for player in game.waiting:
            if rng.random() < 0.3:
                game.write(player, rng.choice(["will", "notebook"]), f"written in {game.round}")
            choices[player] = random_choice(game, player, rng, talk=True)
        game.carry_out(choices)
    return game


def record_of(game: Game) -> Record:
    names = tuple(f"Player {n + 1}" for n in range(len(game.state.players)))
    return Record(game, names, (), ((0, 0, "early"), (game.round - 1, 1, "late")), ((1, 0, {1: 0.5}),))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["five", "classic"]))
def test_with_the_same_choices_a_fork_at_any_round_gives_the_same_log(seed: int, mode: str) -> None:
    assert mode in MODES
    game = played(seed, mode)
    step = 1 if mode == "five" else 1 + game.round // 12
    for at in range(0, game.round + 1, step):
        fork = game.fork(at)
        assert fork.round == at
        assert fork.log == game.log[: len(fork.log)]
        assert len(fork.log) <= (game.starts[at] if at < game.round else len(game.log))
        fork.repeat(game.record[len(fork.record) :])
        assert fork.log == game.log
        assert fork.to_json() == game.to_json()


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.data())
def test_with_other_choices_a_fork_has_the_same_past_and_ends_by_the_rules(
    seed: int, other: int, data: st.DataObject
) -> None:
    game = played(seed)
    at = data.draw(st.integers(0, game.round))
    before, past = list(game.log), game.to_json()
    fork = game.fork(at)
    kept = list(fork.log)
    play_out(fork, random.Random(other), talk=True)
    assert fork.over
    assert fork.log[: len(kept)] == kept == before[: len(kept)]
    assert [e for e in fork.record if e.round < at] == [e for e in game.record if e.round < at]
    assert game.log == before
    assert game.to_json() == past
    assert Game.from_json(fork.to_json()).log == fork.log


def test_a_fork_is_played_on_by_those_who_were_named_the_same_way_each_time() -> None:
    record = record_of(played(3))
    at = record.game.round // 2
    one = forked(record, at, {1: "random"}, seed=5)
    assert one.game.over
    assert one.to_json() == forked(record, at, {1: "random"}, seed=5).to_json()
    assert [e for e in one.game.record if e.round < at] == [e for e in record.game.record if e.round < at]
    assert one.minds[0] == f"somebody until round {at}, then scripted"
    assert one.minds[1] == f"somebody until round {at}, then random"
    assert one.thoughts[0] == (0, 0, "early")
    assert "late" not in [text for _, _, text in one.thoughts]
    assert all(number >= at for number, _, _ in one.thoughts[1:])
    for wrong in ({0: "wizard"}, {4: ""}):
        with pytest.raises(UsageError, match="there are: scripted, random"):
            forked(record, at, wrong)


def test_rounds_are_listed_with_whom_they_asked() -> None:
    game = played(3)
    again = Game(game.setup, game.rules, game.seed)
    rounds = list(rounds_of(game))
    assert [r.number for r in rounds] == list(range(game.round))
    for found in rounds:
        asked, day = game.fork(found.number).waiting, game.fork(found.number).state.day
        assert (found.asked, found.day) == (asked, day)
    assert again.round == 0


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    save_record(tmp_path / "town.json", record_of(played(3)))
    return tmp_path


def test_a_fork_is_made_and_written_beside_the_record(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tossim", "fork", "town.json", "--at", "4", "--seat", "Player 2=random", "--seat", "3=scripted"]
    assert run(arguments) == 0
    assert "4 rounds kept" in capsys.readouterr().out
    made, was = load_record(there / "town-fork-4.json"), load_record(there / "town.json")
    assert made.game.over
    assert [e for e in made.game.record if e.round < 4] == [e for e in was.game.record if e.round < 4]
    assert made.minds[1].endswith("then random")
    assert run(["tossim", "replay", "town-fork-4.json"]) == 0
    assert run(arguments) == 2
    capsys.readouterr()
    assert run(["tossim", "fork", "town.json", "--rounds"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == was.game.round + 1
    assert "day 1" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["town.json"], 2, "Say where to fork: --at 0 to --at"),
        (["town.json", "--at", "9999"], 2, "it can be forked at 0 to"),
        (["town.json", "--at", "1", "--agent", "wizard"], 2, "There is no player 'wizard'"),
        (["town.json", "--at", "1", "--seat", "Zoe=random"], 2, "Zoe"),
        (["town.json", "--at", "1", "--seat", "random"], 2, "--seat takes PLAYER=AGENT"),
        (["none.json", "--at", "1"], 2, "can't be read"),
        (["no-such-run", "--at", "1"], 2, "no run called"),
    ],
)
def test_what_can_not_be_forked_is_told_in_a_sentence(
    there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert run(["tossim", "fork", *arguments]) == code
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told
    assert not list(there.glob("*fork*"))
