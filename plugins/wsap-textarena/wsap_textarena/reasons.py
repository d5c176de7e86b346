"""Kinds of TextArena's games that can't be played, found by trying all of version 0.7.4."""

from __future__ import annotations

import sys
from collections.abc import Mapping

_WORDS = "it downloads a list of words when it is imported"
_JUDGE = "a model behind OpenRouter plays or judges in it"
_FILES = "files of it are missing from TextArena 0.7.4"
_NEWER = "its code needs Python 3.12"

_ALWAYS = {
    **dict.fromkeys(
        (
            *("Codenames", "DontSayIt", "Hangman", "LetterAuction", "SpellingBee"),
            *("WordChains", "WordLadder", "WordSearch", "Wordle"),
        ),
        _WORDS,
    ),
    **dict.fromkeys(("Debate", "GuessWho", "ScenarioPlanning", "TwentyQuestions"), _JUDGE),
    **dict.fromkeys(("ScorableGames", "UsedCar", "UsedCarNegotiation"), _FILES),
    **dict.fromkeys(("RushHour", "Sokoban"), "making one of its puzzles can take minutes"),
    "Klondike": "its code is no valid Python",
    "CharacterConclave": "it calls its own base class wrongly, so that it fails at once",
}
_FROM_3_12 = ("Checkers", "Chess", "IteratedStagHunt", "ReverseTicTacToe", "UltimateTexasHoldem")

REASONS: Mapping[str, str] = {
    **_ALWAYS,
    **({} if sys.version_info >= (3, 12) else dict.fromkeys(_FROM_3_12, _NEWER)),
}
"""The package of an environment -> why it can't be played."""
