"""The history of a game that a town continues, as the option `past` of a run.

`wsap tossim fork` generates its text: the game so far and the forced choices, as compressed JSON in base64. A forked
run so contains everything needed to play, resume and replay it.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol.values import JsonValue
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.game import Game
from wsap_tossim.names import checked_names

__all__ = ["History", "choices_in", "rows_of_choices"]

FORMAT = 1
LARGEST = 64_000_000
"""Maximum bytes before compression."""


@dataclass(frozen=True)
class History:
    """A game to continue."""

    game: Game
    """The game; fork it before playing on."""
    names: tuple[str, ...]
    given: Mapping[int, Choice] = field(default_factory=dict)
    """Player -> its forced choice in the next round; at least one player is still asked."""
    aside: Mapping[str, Any] = field(default_factory=dict)
    """The other fields of a record, such as players and thoughts: unchecked JSON data."""

    def to_option(self) -> str:
        """Return the history as text, for `from_option`."""
        data = {
            "format": FORMAT,
            "game": self.game.to_json(),
            "names": list(self.names),
            "given": rows_of_choices(self.given),
            "aside": dict(self.aside),
        }
        text = json.dumps(data, separators=(",", ":"), sort_keys=True)
        return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")

    @classmethod
    def from_option(cls, text: Any) -> History:
        """Return a history from untrusted text.

        Raises:
            ConfigError: it is damaged, of another version, or of a finished game.
        """
        try:
            data = json.loads(_unpacked(text))
            if data["format"] != FORMAT:
                raise ConfigError(f"The option past has the format {data['format']!r}; this package reads {FORMAT}.")
            game = Game.from_json(data["game"])
            given = choices_in(data["given"])
            names = checked_names([str(name) for name in data["names"]], len(game.state.players))
            aside = dict(data["aside"])
        except SnapshotError as error:
            raise ConfigError(f"The option past can't be replayed: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error, binascii.Error) as error:
            raise ConfigError(
                "The option past is damaged: it is not output of `wsap tossim fork`; fork the game again."
            ) from error
        if game.over:
            raise ConfigError("The option past has a finished game, which can't be continued.")
        for player, choice in given.items():
            if reason := game.refusal(player, choice):
                raise ConfigError(f"The option past is damaged: the choice of player {player} is illegal. {reason}")
        if set(given) >= set(game.waiting):
            raise ConfigError("The option past is damaged: nobody is left to ask in its first round.")
        return cls(game, names, given, aside)


def rows_of_choices(choices: Mapping[int, Choice]) -> list[list[Any]]:
    """Return choices by player as rows that `choices_in` reads; JSON-ready."""
    return [[n, str(c.verb), list(c.targets), c.text] for n, c in sorted(choices.items())]


def choices_in(rows: Iterable[Any]) -> dict[int, Choice]:
    """Return choices by player from their rows.

    Raises:
        ValueError, TypeError: a row is invalid.
    """
    return {int(n): Choice(Verb(verb), tuple(int(t) for t in targets), str(text)) for n, verb, targets, text in rows}


def _unpacked(text: JsonValue) -> bytes:
    if not isinstance(text, str):
        raise TypeError("it is not text")
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(text, validate=True), LARGEST)
    if not unpacking.eof:
        raise ValueError("it is cut off, or too large")
    return data
