"""PettingZoo's classic games in words: planes and one-hot vectors are no text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Any, in this module: environments, and what they observe.

_RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
_SUITS = ("spades", "hearts", "diamonds", "clubs")
_CARDS = tuple(f"{rank} of {suit}" for suit in _SUITS for rank in _RANKS)
_COLUMNS = "ABCDEFGHJKLMNOPQRST"


@dataclass(frozen=True)
class Reader:
    """How one environment is told."""

    text: Callable[[Any, str, Any], str]
    """`(environment, agent, observation) -> text`."""
    names: Callable[[Any, str, Any], Sequence[str]]
    """`(environment, agent, observation) -> the name of each number`; those that are not possible now may be empty."""
    about: str
    """What an agent has to know of the rules and of the text."""


def _fixed(*names: str) -> Callable[[Any, str, Any], Sequence[str]]:
    return lambda env, agent, seen: names


def _signs(planes: Any) -> list[list[str]]:
    """Return X where an agent's own stones are, O where the other's are, and a dot elsewhere."""
    own, other = planes[..., 0], planes[..., 1]
    return [["X" if own[at] else "O" if other[at] else "." for at in _row(own, r)] for r in range(own.shape[0])]


def _row(plane: Any, number: int) -> list[tuple[int, int]]:
    return [(number, column) for column in range(plane.shape[1])]


def _tictactoe(env: Any, agent: str, seen: Mapping[str, Any]) -> str:
    signs = _signs(seen["observation"])
    # Its squares are numbered from top to bottom, then from left to right, and stored in that order.
    rows = [[signs[c][r] if signs[c][r] != "." else str(3 * c + r) for c in range(3)] for r in range(3)]
    return "\n".join(" ".join(row) for row in rows)


def _connect_four(env: Any, agent: str, seen: Mapping[str, Any]) -> str:
    return "\n".join([*(" ".join(row) for row in _signs(seen["observation"])), "0 1 2 3 4 5 6"])


def _rps(env: Any, agent: str, seen: Any) -> str:
    number = int(np.asarray(seen))
    names = ("rock", "paper", "scissors")
    return f"The other's last choice: {names[number]}" if number < len(names) else "The other has not chosen yet."


def _leduc(env: Any, agent: str, seen: Mapping[str, Any]) -> str:
    values = seen["observation"]
    hand, public = (_one(("J", "Q", "K"), values[part]) for part in (slice(0, 3), slice(3, 6)))
    mine, theirs = int(np.argmax(values[6:21])), int(np.argmax(values[21:36]))
    return f"Your card: {hand}\nPublic card: {public}\nYou have bet {mine} chips, the other {theirs}."


def _one(names: Sequence[str], values: Any) -> str:
    return next((name for name, there in zip(names, values, strict=True) if there), "none yet")


def _cards(values: Any) -> str:
    return ", ".join(card for card, there in zip(_CARDS, values[:52], strict=True) if there)


def _texas(env: Any, agent: str, seen: Mapping[str, Any]) -> str:
    values = seen["observation"]
    raised = [int(np.argmax(values[start : start + 5])) for start in (52, 57, 62, 67)]
    counts = ", ".join(map(str, raised))
    return f"Your two cards and those on the table: {_cards(values)}\nRaises in the four rounds: {counts}"


def _no_limit(env: Any, agent: str, seen: Mapping[str, Any]) -> str:
    values = seen["observation"]
    return (
        f"Your two cards and those on the table: {_cards(values)}\n"
        f"You have bet {values[52]:g} chips; the most that anybody has bet is {values[53]:g}."
    )


def _chess(env: Any, agent: str, seen: Any) -> str:
    board = env.unwrapped.board
    colour = "White" if env.possible_agents.index(agent) == 0 else "Black"
    return f"{board}\n\n{board.fen()}\nYou play {colour}."


def _uci(env: Any, agent: str, seen: Mapping[str, Any]) -> Sequence[str]:
    from pettingzoo.classic.chess import chess_utils  # deferred: it needs python-chess

    names = [""] * env.action_space(agent).n
    player = env.possible_agents.index(agent)
    board = env.unwrapped.board
    for number in np.flatnonzero(seen["action_mask"]):
        names[number] = chess_utils.action_to_move(board, int(number), player).uci()
    return names


def _go(env: Any, agent: str, seen: Any) -> str:
    board = env.unwrapped._go.board
    size = len(board)
    signs = {1: "X", -1: "O"}
    rows = [f"{size - i:2d} {' '.join(signs.get(int(at), '.') for at in row)}" for i, row in enumerate(board)]
    stones = "X (black)" if env.possible_agents.index(agent) == 0 else "O (white)"
    return "\n".join([*rows, f"   {' '.join(_COLUMNS[:size])}", f"Your stones: {stones}"])


def _points(env: Any, agent: str, seen: Any) -> Sequence[str]:
    size = len(env.unwrapped._go.board)
    return [*(f"{_COLUMNS[column]}{size - row}" for row in range(size) for column in range(size)), "pass"]


_BETS = _fixed("call", "raise", "fold", "check")
READERS: Mapping[str, Reader] = {
    "chess": Reader(_chess, _uci, "Chess. Moves are written as in UCI: e2e4, e7e8q."),
    "connect_four": Reader(
        _connect_four,
        _fixed(*map(str, range(7))),
        "Connect Four: a move is the number of a column. X are your stones; four in a row win.",
    ),
    "go": Reader(_go, _points, "Go, by area. A move is a point such as D4, or pass."),
    "leduc_holdem": Reader(
        _leduc,
        _BETS,
        "Leduc poker with six cards, two each of J, Q and K. A pair with the public card wins, else the high card.",
    ),
    "rps": Reader(
        _rps, _fixed("rock", "paper", "scissors"), "Rock, paper, scissors, many rounds. Both choose at once."
    ),
    "texas_holdem": Reader(_texas, _BETS, "Limit Texas hold'em."),
    "texas_holdem_no_limit": Reader(
        _no_limit,
        _fixed("fold", "check or call", "raise half the pot", "raise the pot", "all in"),
        "No-limit Texas hold'em.",
    ),
    "tictactoe": Reader(
        _tictactoe, _fixed(*map(str, range(9))), "Tic-tac-toe: a move is the number of a free square. X are your signs."
    ),
}
"""Name of an environment, without its family and version -> how it is told."""

REASONS = {
    "atari": "it observes pictures",
    "butterfly": "it observes pictures, or vectors without names",
    "sisl": "it observes large vectors, and takes continuous actions",
    "hanabi": "it observes hundreds of numbers without names; play openspiel:hanabi",
}
"""Family or name of an environment -> why it has no text form."""
