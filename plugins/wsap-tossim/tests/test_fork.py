"""A game forked at any round has the same past to the letter, and whatever end is chosen."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.cli.app import run
from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import Action
from wsap_tossim.cli.sources import Found, found
from wsap_tossim.engine.data.model import WAIT, Choice, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import WRITINGS, Entry, Game
from wsap_tossim.engine.random_play import play_out, random_choice
from wsap_tossim.engine.setups import MODES, setup
from wsap_tossim.forced_choices import forced_choices_of
from wsap_tossim.fork import BY_HAND, Start, forked, parted, rounds_of
from wsap_tossim.history import History
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.observation import TownObservation
from wsap_tossim.plugin import wsap_adapters
from wsap_tossim.replay import Record, load_record, save_record
from wsap_tossim.world import Town

(TOWN,) = wsap_adapters()


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
@pytest.mark.slow
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
    before, record = list(game.log), game.to_json()
    fork = game.fork(at)
    kept = list(fork.log)
    play_out(fork, random.Random(other), talk=True)
    assert fork.over
    assert fork.log[: len(kept)] == kept == before[: len(kept)]
    assert [e for e in fork.record if e.round < at] == [e for e in game.record if e.round < at]
    assert game.log == before
    assert game.to_json() == record
    assert Game.from_json(fork.to_json()).log == fork.log


def test_a_fork_is_played_on_by_those_who_were_named_the_same_way_each_time() -> None:
    record = record_of(played(3))
    at = record.game.round // 2
    one = forked(record, at, {1: "random"}, seed=5)
    assert one.game.over
    assert one.to_json() == forked(record, at, {1: "random"}, seed=5).to_json()
    assert [e for e in one.game.record if e.round < at] == [e for e in record.game.record if e.round < at]
    assert one.played_by[0] == f"somebody until round {at}, then scripted"
    assert one.played_by[1] == f"somebody until round {at}, then random"
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
    for one in rounds:
        asked, day = game.fork(one.number).waiting, game.fork(one.number).state.day
        assert (one.asked, one.day) == (asked, day)
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
    assert "4 rounds kept, " in capsys.readouterr().out
    assert run([*arguments[:4], "1", "--out", "one.json"]) == 0
    assert "1 round kept, " in capsys.readouterr().out
    made, was = load_record(there / "town-fork-4.json"), load_record(there / "town.json")
    assert made.game.over
    assert [e for e in made.game.record if e.round < 4] == [e for e in was.game.record if e.round < 4]
    assert made.played_by[1].endswith("then random")
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


# --- decisions that are picked -------------------------------------------------------------------


def by_hand(game: Game, at: int, *words: str, ask_others: bool = False) -> Start:
    names = tuple(f"Player {n + 1}" for n in range(len(game.state.players)))
    return parted(Record(game, names), at, forced_choices_of(words, names, game), ask_others=ask_others)


def night_of(game: Game) -> int:
    """Return a round in which several are asked at once, one of them with something to do."""
    return next(r.number for r in rounds_of(game) if r.phase == "night" and len(r.asked) > 1)


def test_a_picked_decision_stands_beside_what_the_others_decided() -> None:
    game = played(3)
    at = night_of(game)
    was = [e for e in game.record if e.round == at]
    chooser = next(e for e in was if e.verb not in ("wait", "will", "notebook"))
    start = by_hand(game, at, f"player-{chooser.player + 1}=wait")
    now = [e for e in start.record.game.record if e.round == at]
    assert start.record.game.round == at + 1
    assert not start.given
    assert [e for e in now if e.player == chooser.player] == [Entry(at, chooser.player, "wait")]
    assert [e for e in now if e.player != chooser.player] == [e for e in was if e.player != chooser.player]
    assert start.record.game.record[: -len(now)] == game.record[: len(start.record.game.record) - len(now)]
    assert (at, chooser.player, BY_HAND) in start.record.thoughts


def test_others_can_be_asked_anew_beside_it() -> None:
    game = played(3)
    at = night_of(game)
    asked = list(rounds_of(game))[at].asked
    start = by_hand(game, at, f"{asked[0] + 1}=wait", ask_others=True)
    assert start.record.game.round == at
    assert start.given == {asked[0]: WAIT}
    record = Record(game, start.record.names)
    if asked[0] == 0:
        forced = forced_choices_of(["1=wait"], record.names, game)
        assert forked(record, at, {}, otherwise="random", forced_choices=forced, ask_others=True).game.over


def test_papers_are_picked_too_and_come_before_the_decision() -> None:
    game = played(3)
    at = night_of(game)
    player = next(n for n in list(rounds_of(game))[at].asked if game.fork(at).state.players[n].alive)
    start = by_hand(game, at, f"{player + 1}=notebook Remember this.", f"{player + 1}=wait")
    mine = [e for e in start.record.game.record if e.round == at and e.player == player]
    assert [e.verb for e in mine] == ["notebook", "wait"]
    assert mine[0].text.endswith("Remember this.")
    alone = by_hand(game, at, f"{player + 1}=notebook Remember this.")
    kept = [e for e in alone.record.game.record if e.round == at and e.verb not in WRITINGS]
    assert kept == [e for e in game.record if e.round == at and e.verb not in WRITINGS], "its decision is as it was"


def test_what_is_picked_where_the_record_ends_waits_for_the_others() -> None:
    game = played(3)
    at = night_of(game)
    cut = game.fork(at)
    start = by_hand(cut, at, f"{cut.waiting[0] + 1}=wait")
    assert start.record.game.round == at
    assert set(start.given) == {cut.waiting[0]}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 500), st.data())
def test_whatever_is_picked_leaves_the_past_and_ends_by_the_rules(seed: int, data: st.DataObject) -> None:
    game = played(seed)
    at = data.draw(st.integers(0, game.round - 1))
    here = game.fork(at)
    player = data.draw(st.sampled_from(list(here.waiting)))
    choice = random_choice(here, player, random.Random(seed), talk=False)
    names = tuple(f"Player {n + 1}" for n in range(5))
    typed = " ".join([choice.verb, *(names[t] for t in choice.targets), choice.text]).strip()
    forced = forced_choices_of([f"{player + 1}={typed}"], names, game)
    made = forked(
        Record(game, names), at, {}, otherwise="random", forced_choices=forced, ask_others=data.draw(st.booleans())
    )
    assert made.game.over
    assert [e for e in made.game.record if e.round < at] == [e for e in game.record if e.round < at]
    (entry,) = [e for e in made.game.record if e.round == at and e.player == player and e.verb not in WRITINGS]
    assert (entry.verb, entry.targets) == (choice.verb, choice.targets)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["wait"], "--set takes PLAYER=ACTION, such as 'Player 1=wait'"),
        (["Zoe=wait"], "the players are: Player 1, Player 2"),
        (["1="], "Type the name of an action."),
        (["1=dance"], "dance"),
        (["1=vote"], "vote needs 'player'"),
        (["1=vote Zoe"], "vote"),
        (["1=graveyard"], "is a lookup"),
        (["1=wait", "player-1=wait"], "is given two decisions"),
    ],
)
def test_what_can_not_be_picked_is_told_in_a_sentence(words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as raised:
        by_hand(played(3), 0, *words)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_game_refuses_in_its_own_words() -> None:
    game = played(3)
    first = game.fork(0)
    asked, other = first.waiting[0], next(n for n in range(5) if n not in first.waiting)
    with pytest.raises(
        UsageError, match=rf"Player {other + 1} is not asked in round 0; asked are: Player {asked + 1}\."
    ):
        by_hand(game, 0, f"{other + 1}=wait")
    with pytest.raises(UsageError, match=re.escape(first.refusal(asked, Choice(Verb.GUILTY)))):
        by_hand(game, 0, f"{asked + 1}=guilty")
    with pytest.raises(UsageError, match="nobody, because the game is over"):
        by_hand(game, game.round, "1=wait")
    with pytest.raises(UsageError, match=r"too long|at most"):
        by_hand(game, 0, f"{asked + 1}=write_will " + "x" * 5000)


# --- going on as a run ---------------------------------------------------------------------------


def test_the_past_of_a_run_is_text_that_gives_it_back() -> None:
    game = played(3)
    at = night_of(game)
    start = by_hand(game, at, f"{list(rounds_of(game))[at].asked[0] + 1}=wait", ask_others=True)
    history = start.history()
    again = History.from_option(history.to_option())
    assert again.game.to_json() == history.game.to_json()
    assert (again.names, again.given, again.aside) == (
        history.names,
        history.given,
        json.loads(json.dumps(history.aside)),
    )
    options = TownOptions.read({"past": history.to_option(), "watch": "all"})
    assert (options.setup, options.rules, options.names) == (game.setup, game.rules, history.names)
    assert TOWN.with_options({"past": history.to_option()}).seats == (5, 5)
    assert options.begin(99).to_json() == history.game.to_json(), "whatever the seed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data | {"format": 9}, "has the format 9"),
        (lambda data: data | {"names": ["A"]}, "names for 5 players"),
        (lambda data: data | {"given": [[0, "fly", [], ""]]}, "is damaged"),
        (lambda data: data | {"given": [[0, "wait", [], ""]]}, "nobody is left to ask"),
        (lambda data: data | {"given": [[4, "wait", [], ""]]}, "is damaged"),
        (lambda data: data | {"game": {}}, "can't be replayed"),
        (lambda data: {}, "is damaged"),
    ],
)
def test_a_past_that_is_damaged_is_refused(change: Callable[[dict[str, Any]], dict[str, Any]], words: str) -> None:
    text = by_hand(played(3), 0).history().to_option()
    data = json.loads(zlib.decompress(base64.b64decode(text)))
    changed = base64.b64encode(zlib.compress(json.dumps(change(data)).encode())).decode()
    with pytest.raises(ConfigError, match=words):
        History.from_option(changed)
    for wrong in ("", "!", "AAAA", text[:-8], 5, None):
        with pytest.raises(ConfigError, match="is damaged"):
            History.from_option(wrong)


def test_a_past_says_how_the_game_is_played_and_nothing_else_may() -> None:
    game = played(3)
    text = by_hand(game, 0).history().to_option()
    for name, value in {"mode": "five", "rules": "quick", "names": "A,B", "nomination_rounds": 1}.items():
        with pytest.raises(ConfigError, match=f"leave out {name}"):
            TownOptions.read({"past": text, name: value})
    with pytest.raises(UsageError, match="is over at round"):
        by_hand(game, game.round).history()


def test_a_world_with_a_past_asks_nobody_for_what_is_given() -> None:
    game = played(3)
    at = night_of(game)
    asked = list(rounds_of(game))[at].asked
    history = by_hand(game, at, f"{asked[0] + 1}=wait", ask_others=True).history()
    town = Town(TownOptions.read({"past": history.to_option()}), 1)
    town.reset(2)
    again = Town(town.options, 5)
    again.restore(town.snapshot())

    async def night(world: Town) -> None:
        seats = [world.seat(f"player-{n + 1}") for n in asked[1:]]
        acting = []
        for seat in seats:
            seen = await seat.observe()
            assert isinstance(seen, TownObservation)
            assert (seen.step, seen.first_news, seen.news[0]["kind"]) == (0, 0, "begins")
            acting.append(asyncio.create_task(seat.act(Action("wait"))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in acting:
            task.cancel()

    for world in (town, again):
        assert world.game.round == at
        asyncio.run(asyncio.wait_for(night(world), 300))
        assert world.game.round == at + 1
        entries = [e for e in world.game.record if e.round == at and e.verb not in WRITINGS]
        assert [(e.player, e.verb) for e in entries] == [(n, "wait") for n in asked]


def exported(name: str, file: str) -> Found:
    """Return the game of a recorded run."""
    assert run(["export", name, "--output", file]) == 0
    return found(file, None)


@pytest.mark.slow
def test_a_fork_is_a_run_that_is_replayed_exported_and_forked_like_any_other(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["play", "tossim", "--option", "mode=five", "--option", "tool_calls=3", "--seed", "3", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["run"]
    was = exported("last", "first.jsonl").record
    at = night_of(was.game)
    chooser = list(rounds_of(was.game))[at].asked[0]
    command = ["tossim", "fork", first, "--at", str(at), "--set", f"player-{chooser + 1}=wait", "--others", "ask"]
    assert run([*command, "--seat", "2=tossim-random", "--seed", "4", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [seat["agent"] for seat in summary["seats"]].count("tossim-player") == 4
    now = exported(summary["run"], "run.jsonl")
    assert now.options["tool_calls"] == 3
    game, ending = now.record.game, now.record.game.ending
    assert ending is not None
    assert [n for n, seat in enumerate(summary["seats"]) if seat["reward"] > 0] == sorted(ending.winners)
    assert [e for e in game.record if e.round < at] == [e for e in was.game.record if e.round < at]
    assert next(e for e in game.record if e.round == at and e.player == chooser).verb == "wait"
    assert now.record.played_by[1] == f"tossim-player until round {at}, then tossim-random"
    assert set(now.record.played_by) == {"tossim-player", now.record.played_by[1]}
    assert [row for row in now.record.thoughts if row[0] < at] == [row for row in was.thoughts if row[0] < at]
    assert run(["tossim", "replay", "last", "--out", "fork.html"]) == 0
    assert run(["tossim", "export", "last", "--out", "turns.jsonl"]) == 0
    lines = [json.loads(line) for line in (there / "turns.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["mind"] for line in lines} <= {"tossim-player", "tossim-random"}
    assert run(["tossim", "fork", "last", "--at", str(game.round - 1), "--out", "again.json"]) == 0
    again = load_record(there / "again.json").game
    assert [e for e in again.record if e.round < game.round - 1] == [e for e in game.record if e.round < game.round - 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "1=fly"], "fly"),
        (["--others", "ask"], "--others has an effect only with --set"),
        (["--seat", "1=random", "--seat", "Player 1=scripted"], "names Player 1 twice"),
        (["--seat", "1=wizard"], "wizard"),
        (["--agent", "wizard"], "wizard"),
        (["--seat", "1=human"], "needs a terminal"),
        (["--seat", "1=human", "--json"], "needs a person at a terminal|needs a terminal|leaves no place"),
        (["--run", "--out", "x.json"], "--out and --force apply only to records"),
        (["--model", "openai/x", "--agent", "scripted"], "choose one"),
        (["--run", "--", "--option", "mode=five"], "leave out mode"),
        (["--run", "--", "--steps", "nine"], "steps"),
    ],
)
def test_what_a_run_can_not_go_on_with_is_told_in_a_sentence(
    there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(["tossim", "fork", "town.json", "--at", "1", *arguments]) == 2
    told = capsys.readouterr().err
    assert re.search(words, told), told
    assert "Traceback" not in told
    assert not list(there.glob("*fork*"))
    assert run(["runs"]) == 0
    assert "tossim" not in capsys.readouterr().out, "nothing is recorded"


def test_the_list_says_what_was_decided_as_it_would_be_typed(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tossim", "fork", "town.json", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    record = load_record(there / "town.json")
    for one in rounds_of(record.game):
        number, _, rest = lines[one.number].strip().partition("  ")
        assert int(number) == one.number
        deeds = rest.partition(": ")[2].split("; ")
        forced = forced_choices_of(deeds, record.names, record.game)
        assert [p.player for p in forced] == list(one.asked)
        assert [p.action.name for p in forced] == [e.verb for e in one.chosen]
    assert "Asked next" not in lines[-1], "it is over"
    cut = record.game.fork(2)
    save_record(there / "cut.json", replace(record, game=cut))
    assert run(["tossim", "fork", "cut.json", "--list"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"    2  The game has not ended. Asked next: Player {cut.waiting[0] + 1}."
    assert run(["tossim", "fork", "town.json", "other.json", "--list"]) == 2
    assert "leave out 'other.json'" in capsys.readouterr().err
