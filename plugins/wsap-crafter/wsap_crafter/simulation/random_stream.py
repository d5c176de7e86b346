"""The game's random numbers: numpy's legacy stream, drawn with Python's faster generator.

Crafter draws from ``numpy.random.RandomState``. Like Python's ``random.Random`` it is the Mersenne Twister, and with
the same state both give the same 53-bit doubles and 32-bit words. A scalar draw takes one to eight microseconds with
numpy, a twentieth of one with Python. The tests compare the sequences draw by draw.
"""

from __future__ import annotations

import base64
import random

import numpy as np

_WORDS = 624


class GameRandom:
    """The part of ``RandomState`` that Crafter's rules use, with the same numbers; ``uniform()`` takes no arguments."""

    def __init__(self, seed: int) -> None:
        _, keys, position, *_ = np.random.RandomState(seed).get_state(legacy=True)
        self._mersenne = random.Random()
        self._load(tuple(np.asarray(keys).tolist()), int(position))

    def _load(self, keys: tuple[int, ...], position: int) -> None:
        self._mersenne.setstate((3, (*keys, position), None))
        self.uniform = self._mersenne.random
        self._bits = self._mersenne.getrandbits

    def randint(self, low: int, high: int) -> int:
        """Return an integer in ``[low, high)``, drawn like numpy's legacy generator.

        A 32-bit word is masked to the next power of two, and drawn again while it is too large. A range of one value
        draws nothing.
        """
        span = high - low - 1
        if span <= 0:
            return low
        mask = (1 << span.bit_length()) - 1
        value = self._bits(32) & mask
        while value > span:
            value = self._bits(32) & mask
        return low + value

    def dump(self) -> tuple[str, int]:
        """Return the state as (base64 of 624 little-endian words, position)."""
        _, words, _ = self._mersenne.getstate()
        packed = np.array(words[:_WORDS], dtype="<u4").tobytes()
        return base64.b64encode(packed).decode("ascii"), words[_WORDS]

    def load(self, words: str, position: int) -> None:
        """Continue from a state of :meth:`dump`; raise ValueError if it is invalid."""
        packed = base64.b64decode(words.encode("ascii"), validate=True)
        if len(packed) != 4 * _WORDS or not 0 <= position <= _WORDS:
            raise ValueError("The random generator's state is not 624 words with a position in 0..624.")
        self._load(tuple(np.frombuffer(packed, dtype="<u4").tolist()), position)
