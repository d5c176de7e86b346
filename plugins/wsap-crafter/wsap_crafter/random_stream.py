"""The game's random numbers: numpy's legacy stream, drawn at the speed of Python's own generator.

Crafter draws from ``numpy.random.RandomState``, which is the Mersenne Twister, and so is Python's
``random.Random``: loaded with the same state both give the same 53-bit doubles and 32-bit words. A
scalar draw from numpy costs one to eight microseconds, from Python a twentieth of one; the
sequence is the same, which the tests compare draw by draw.
"""

from __future__ import annotations

import base64
import random

import numpy as np

_WORDS = 624


class GameRandom:
    """The part of ``RandomState`` that Crafter's rules use, giving the very same numbers.

    ``uniform()`` takes no arguments here: no rule of the game passes any.
    """

    def __init__(self, seed: int) -> None:
        _, keys, position, *_ = np.random.RandomState(seed).get_state(legacy=True)
        self._mersenne = random.Random()
        self._load(tuple(np.asarray(keys).tolist()), int(position))

    def _load(self, keys: tuple[int, ...], position: int) -> None:
        self._mersenne.setstate((3, (*keys, position), None))
        self.uniform = self._mersenne.random
        self._bits = self._mersenne.getrandbits

    def randint(self, low: int, high: int) -> int:
        """Return an integer in ``[low, high)``, drawn as numpy's legacy generator draws it.

        That is: mask a 32-bit word to the next power of two and draw again while it is too large.
        A range of one value draws nothing.
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
        """Continue from a state given by :meth:`dump`.

        Raises:
            ValueError: when it is not 624 words with a position in 0..624.
        """
        packed = base64.b64decode(words.encode("ascii"), validate=True)
        if len(packed) != 4 * _WORDS or not 0 <= position <= _WORDS:
            raise ValueError("The random generator's state is not 624 words with a position in 0..624.")
        self._load(tuple(np.frombuffer(packed, dtype="<u4").tolist()), position)
