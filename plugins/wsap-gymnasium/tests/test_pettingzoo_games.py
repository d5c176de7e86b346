"""PettingZoo environments as games, by WSAP's own checker and beside PettingZoo itself."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pettingzoo
import pytest

from wsap_check import run_checks
from wsap_core.errors import MissingServiceError, PluginError, SnapshotError, UsageError, WsapError
from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context, derive_seed
from wsap_gymnasium.multi import aec, parallel
from wsap_gymnasium.zoo_games import PLAY, PettingZooGame, environments
from wsap_nexus import api

# What their packages say when they are imported.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

ENVIRONMENTS = (
    "chess-v6", "connect_four-v3", "go-v5", "leduc_holdem-v4", "rps-v2", "texas_holdem-v4", "texas_holdem_no_limit-v6",
    "tictactoe-v3",
)  # fmt: skip
SMALL = {"go-v5": {"board_size": 5}}


def begun(name: str, seed: int = 0, **arguments: Any) -> PettingZooGame:
    game = PettingZooGame(name, arguments, Context.create(seed))
    game.reset(seed)
    return game


def played(game: PettingZooGame, chance: Random, most: int = 100) -> None:
    for _ in range(most):
        if not (movers := game.to_move()):
            return
        (offer,) = game.legal(movers[0])
        game.apply({movers[0]: Action(PLAY, {"move": chance.choice(list(offer.choices["move"]))})})


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_conforms(name: str) -> None:
    report = run_checks(
        load_adapter_spec(f"pettingzoo:classic/{name}"),
        steps=4 if name == "chess-v6" else 20,  # a move of chess takes it milliseconds
        config={"kwargs": SMALL.get(name, {})},
        subprocesses=name == "leduc_holdem-v4",
    )
    assert report.ok, report.findings


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_is_the_environment_itself_that_is_played(name: str) -> None:
    game = begun(f"classic/{name}", 4, **SMALL.get(name, {}))
    played(game, Random(3))
    original = pettingzoo.make("aec", f"classic/{name}", **SMALL.get(name, {}))
    original.reset(seed=derive_seed(4, 0))
    paid = dict.fromkeys(original.possible_agents, 0.0)
    for move in game.dump():
        original.step(move)
        for agent, reward in original.rewards.items():
            paid[agent] += float(reward)
    assert dict(game.returns()) == paid
    assert not game.to_move() or not any(original.terminations.values())


def test_moves_have_names_and_boards_are_drawn() -> None:
    game = begun("classic/tictactoe-v3")
    for seat, square in (("player_1", "0"), ("player_2", "4"), ("player_1", "3")):
        game.apply({seat: Action(PLAY, {"move": square})})
    assert game.see("player_1").to_text().splitlines()[-3:] == ["X X 6", "1 O 7", "2 5 8"]
    assert game.see("player_2").to_text().splitlines()[-3:] == ["O O 6", "1 X 7", "2 5 8"]
    chess = begun("classic/chess-v6")
    assert "e2e4" in chess.legal("player_0")[0].choices["move"]
    chess.apply({"player_0": Action(PLAY, {"move": " E2E4 "})})
    assert "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b" in chess.see("player_1").to_text()
    assert "e7e5" in chess.legal("player_1")[0].choices["move"], "as Black sees the board"


def test_a_player_sees_its_own_cards_only() -> None:
    for seed in range(5):
        game = begun("classic/leduc_holdem-v4", seed)
        cards = {seat: game.see(seat).drawing.splitlines()[0] for seat in game.seats}
        hands = [player.hand.rank for player in game._env.unwrapped.env.game.players]
        assert list(cards.values()) == [f"Your card: {rank}" for rank in hands]


def test_a_choice_at_the_same_time_is_not_seen_before() -> None:
    one, other = begun("classic/rps-v2"), begun("classic/rps-v2")
    one.apply({"player_0": Action(PLAY, {"move": "rock"})})
    other.apply({"player_0": Action(PLAY, {"move": "paper"})})
    assert one.observation("player_1") == other.observation("player_1")


def test_moves_that_are_not_possible_are_no_snapshot() -> None:
    from wsap_core.authoring.packing import pack

    game = begun("classic/connect_four-v3")
    played(game, Random(1), 5)
    state, before = game.unpacked(game.snapshot()), game.dump()
    for damage in ("none", [7], [-1], [True], [0] * 7, ["0"], [2**70]):
        with pytest.raises(SnapshotError):
            game.restore(pack(game._header, {**state, "game": damage}))
        assert game.dump() == before


def test_the_same_seed_and_moves_give_the_same_trajectory() -> None:
    hashes = [
        api.play("pettingzoo:classic/leduc_holdem-v4", "random-legal", seed=seed, episodes=2, record=False)
        .to_json()["trajectory_hash"]
        for seed in (3, 3, 4)
    ]  # fmt: skip
    assert hashes[0] == hashes[1] != hashes[2]


def test_there_and_back_again_it_pays_the_same() -> None:
    env = aec("pettingzoo:classic/connect_four-v3")
    env.reset(seed=2)
    original = pettingzoo.make("aec", "classic/connect_four-v3")
    original.reset(seed=2)
    chance = np.random.default_rng(1)
    while env.agents and not any(env.terminations.values()):
        seen, *_ = env.last()
        theirs, *_ = original.last()
        assert seen["action_mask"].tolist() == theirs["action_mask"].tolist()
        move = chance.choice(np.flatnonzero(seen["action_mask"]))
        env.step(move)
        original.step(int(move))
    assert env.rewards == original.rewards


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("classic/nosuch-v1", UsageError, "no environment 'classic/nosuch-v1'"),
        ("classic/hanabi-v5", UsageError, "hundreds of numbers without names"),
        ("atari/pong-v3", UsageError, "pictures"),
        ("butterfly/pistonball-v6", UsageError, "pictures"),
        ("sisl/pursuit-v5", UsageError, "large vectors"),
        ("no_such_module_here:env", PluginError, "needs another package"),
        ("math:sqrt", PluginError, "can't be created"),
        ("classic/tictactoe-v3()", UsageError, "no environment"),
    ],
)
def test_what_can_t_be_told_is_refused_in_one_sentence(name: str, error: type[WsapError], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        PettingZooGame(name, {})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("arguments", [{"no_such": 1}, {"screen_height": "x", "no": 2}])
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="can't be created"):
        PettingZooGame("classic/tictactoe-v3", arguments)


def test_all_that_is_registered_is_listed_with_the_reason() -> None:
    known = environments()
    assert {name for name, why in known.items() if not why} == {f"classic/{name}" for name in ENVIRONMENTS}
    assert len(known) > 30


def test_without_pettingzoo_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingServiceError, match=r"need the package pettingzoo.*wsap-gymnasium\[pettingzoo\]"):
        environments()


OWN = """
    import gymnasium
    from pettingzoo import AECEnv

    class Race(AECEnv):
        "Two runners; the second pays what it is told to."
        metadata = {"name": "race"}
        def __init__(self, pay=1.0, pictures=False, limit=None):
            super().__init__()
            self.possible_agents = ["runner_0", "runner_1"]
            shape = (64, 64, 3) if pictures else (2,)
            self.space = gymnasium.spaces.Box(0, 9, shape)
            self.moves = gymnasium.spaces.Discrete(3)
            self.pay, self.limit = pay, limit
        def observation_space(self, agent):
            return self.space
        def action_space(self, agent):
            return self.moves
        def observe(self, agent):
            import numpy as np
            return np.array([self.steps, 1.0], np.float32)
        def reset(self, seed=None, options=None):
            self.agents = list(self.possible_agents)
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
            self.terminations = dict.fromkeys(self.agents, False)
            self.truncations = dict.fromkeys(self.agents, False)
            self.infos = {agent: {} for agent in self.agents}
            self.steps, self.agent_selection = 0, "runner_0"
        def step(self, action):
            agent = self.agent_selection
            if self.terminations[agent] or self.truncations[agent]:
                return self._was_dead_step(action)
            self.steps += 1
            self._clear_rewards()
            if self.steps == 4:
                self.rewards = {"runner_0": 1.0, "runner_1": self.pay}
                self.terminations = dict.fromkeys(self.agents, True)
            if self.steps == self.limit:
                self.truncations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[self.steps % 2]

    def parallel(**how):
        return object()
"""


def test_one_s_own_environment_is_played_and_one_that_pays_no_number_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_race.py").write_text(textwrap.dedent(OWN), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    game = begun("own_race:Race")
    assert game.see("runner_0").status == {"x0": 0.0, "x1": 1.0}
    assert list(game.legal("runner_0")[0].choices["move"]) == ["0", "1", "2"]
    played(game, Random(1))
    assert not game.to_move()
    assert game.returns() == {"runner_0": 1.0, "runner_1": 1.0}
    with pytest.raises(ValueError, match="gave runner_1 the reward nan, which is no number"):
        played(begun("own_race:Race", pay=float("nan")), Random(1))
    with pytest.raises(UsageError, match="pictures or other large arrays"):
        begun("own_race:Race", pictures=True)
    with pytest.raises(WsapError, match="own_race:parallel"):
        begun("own_race:parallel")


@pytest.mark.parametrize(("limit", "late"), [(2, True), (4, False), (None, False)])
def test_an_end_by_a_limit_is_told_from_one_by_the_rules_there_and_back_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, late: bool
) -> None:
    (tmp_path / "own_race.py").write_text(textwrap.dedent(OWN), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    name, how = "pettingzoo", {"id": "own_race:Race", "kwargs": {"limit": limit}}
    played = api.play(name, "random-legal", episodes=1, record=False, options=how).to_json()
    assert [seat.get("truncated", False) for seat in played["seats"]] == [late, late]
    env = aec(name, options=how)
    env.reset(seed=1)
    while not any(env.terminations.values()) and not any(env.truncations.values()):
        env.step(0)
    assert set(env.truncations.values()) == {late}
    assert set(env.terminations.values()) == {not late}
    together = parallel(name, options=how)
    together.reset(seed=1)
    while together.agents:
        _, _, terminations, truncations, _ = together.step(dict.fromkeys(together.agents, 0))
    assert set(truncations.values()) == {late}
    assert set(terminations.values()) == {not late}
