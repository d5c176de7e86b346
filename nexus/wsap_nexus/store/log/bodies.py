"""Compression of event bodies: zstandard with a dictionary for each kind of event in a run.

Successive observations of a world are mostly the same text. Therefore the first bodies of a kind are the dictionary of
the later ones: no training, a few kilobytes per run, and each event can be read on its own. As the world changes, newer
bodies replace them, each time after four times as many. A body of Crafter (7 KB) takes about 300 bytes, a quarter of
zstandard without a dictionary, in about 4 µs. Trained dictionaries, or compressing each body against the previous one,
gained too little when measured.

When hundreds of runs of one world are written at once, a run uses the dictionary of another if that compresses as well
as its own would. The database has a copy for each run; the compressor, which takes longer to create than a body to
compress, is shared.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import zstandard

from wsap_nexus.store.errors import UnreadableError

K = TypeVar("K")
V = TypeVar("V")

LEVEL = 3
"""zstandard's level: lower ones save no time on bodies of this size, higher ones take three times as long."""

DICTIONARY_SAMPLES = 8
"""Bodies in a dictionary; more gain nothing measurable."""

DICTIONARY_BYTES = 65536
"""The maximum size of a dictionary; of larger samples, the end is used."""

RENEWED = 4
"""The factor between the body counts at which a stream gets new dictionaries."""

SMALLEST = 48
"""Bytes below which a body is not compressed."""

LARGEST_BODY = 1 << 28
"""The maximum size of a body: 256 MiB."""

_READY = 64  # cached compressors, about half a megabyte each; creating one takes 0.1 ms
_TRIED = 4  # dictionaries of other runs tried before a run gets its own
_NEARLY = 1.15  # the maximum size with another run's dictionary, relative to the run's own
_RUNS = 10_000  # runs with cached dictionaries, 2 KB each; beyond that the least recently used run gets new ones
_KINDS = 1_000  # event kinds whose dictionaries are shared between runs


class Encoded(NamedTuple):
    """A stored body."""

    codec: str
    """"raw" or "zstd"."""
    dictionary: int | None
    """The number of the dictionary within the run; None for none."""
    body: bytes


class NewDictionary(NamedTuple):
    """A dictionary to store with its first bodies."""

    run_id: str
    number: int
    """Its number within the run, from 1."""
    kind: str
    body: bytes
    """Its content, compressed."""


@dataclass
class _Stream:
    """The bodies of one kind in one run: samples first, then their dictionary."""

    samples: list[bytes] = field(default_factory=list)
    number: int | None = None
    packed: bytes = b""
    count: int = 0
    renewed_at: int = 0
    """The body count at which sampling for the next dictionary starts."""


class BodyEncoder:
    """Compresses bodies, in one thread."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL)
        self._streams: OrderedDict[str, dict[str, _Stream]] = OrderedDict()
        self._ready: OrderedDict[bytes, zstandard.ZstdCompressor] = OrderedDict()
        self._made: OrderedDict[str, deque[bytes]] = OrderedDict()
        self._numbers: dict[str, int] = {}

    def start_run(self, run_id: str, dictionaries: int) -> None:
        """Set the number of stored dictionaries of a run, before its first body is encoded."""
        self._numbers[run_id] = dictionaries

    def end_run(self, run_id: str) -> None:
        """Forget a run; call `start_run` before encoding another body of it."""
        self._numbers.pop(run_id, None)
        self._streams.pop(run_id, None)

    def encode(self, run_id: str, kind: str, bodies: Sequence[bytes]) -> tuple[list[Encoded], NewDictionary | None]:
        """Return the stored bodies, in the same order, and a new dictionary if one was made."""
        stream = _take(self._streams, run_id, dict, keep=_RUNS).setdefault(kind, _Stream())
        made = None
        stream.count += len(bodies)
        if stream.count > stream.renewed_at:
            stream.samples += bodies[: DICTIONARY_SAMPLES - len(stream.samples)]
            if len(stream.samples) >= DICTIONARY_SAMPLES:
                made = self._make_dictionary(run_id, kind, stream)
        compressor = self._plain
        if stream.number is not None:
            compressor = self._compressor(stream.packed)
        packed = _compress(compressor, bodies)
        encoded = [
            Encoded("zstd", stream.number, small) if len(small) < len(body) else Encoded("raw", None, body)
            for body, small in zip(bodies, packed, strict=True)
        ]
        return encoded, made

    def _make_dictionary(self, run_id: str, kind: str, stream: _Stream) -> NewDictionary | None:
        content = b"".join(stream.samples)[-DICTIONARY_BYTES:]
        last, left = stream.samples[-1], self._left(stream.samples)
        stream.samples.clear()
        stream.renewed_at = RENEWED * stream.count
        if left is None:
            return None
        packed = self._of_another(kind, last, left) or self._of_its_own(kind, content)
        if packed == stream.packed:
            return None  # the current one still serves
        stream.packed = packed
        number = self._numbers.get(run_id, 0) + 1
        self._numbers[run_id] = stream.number = number
        return NewDictionary(run_id, number, kind, stream.packed)

    def _left(self, samples: Sequence[bytes]) -> int | None:
        # The size of the last sample with the others as its dictionary; None if the gain is too small.
        *others, last = samples
        if len(last) < SMALLEST or not any(others):
            return None
        helped = _with_dictionary(b"".join(others)[-DICTIONARY_BYTES:]).compress(last)
        return len(helped) if len(helped) < 0.5 * len(self._plain.compress(last)) else None

    def _of_another(self, kind: str, body: bytes, left: int) -> bytes | None:
        for packed in self._made.get(kind, ()):
            if len(self._compressor(packed).compress(body)) <= _NEARLY * left:
                return packed
        return None

    def _of_its_own(self, kind: str, content: bytes) -> bytes:
        packed = self._plain.compress(content)
        _take(self._made, kind, lambda: deque(maxlen=_TRIED), keep=_KINDS).append(packed)
        return packed

    def _compressor(self, packed: bytes) -> zstandard.ZstdCompressor:
        return _take(self._ready, packed, lambda: _with_dictionary(zstandard.decompress(packed)), keep=_READY)


def _with_dictionary(content: bytes) -> zstandard.ZstdCompressor:
    dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    # Once per dictionary: a second call crashes in zstandard 0.25.
    dictionary.precompute_compress(level=LEVEL)
    return zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)


def _take(known: OrderedDict[K, V], key: K, make: Callable[[], V], *, keep: int) -> V:
    # A cache of the `keep` most recently used values.
    value = known.get(key)
    if value is None:
        value = known[key] = make()
        if len(known) > keep:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return value


def _compress(compressor: zstandard.ZstdCompressor, bodies: Sequence[bytes]) -> list[bytes]:
    worth: list[bytes | bytearray | memoryview] = [body for body in bodies if len(body) >= SMALLEST]
    if len(worth) > 1 and "multi_compress_to_buffer" in zstandard.backend_features:
        # One call releases the GIL only once; getting it back can take 5 ms while another thread is computing.
        packed = iter(compressor.multi_compress_to_buffer(worth))
        return [next(packed).tobytes() if len(body) >= SMALLEST else body for body in bodies]
    return [compressor.compress(body) if len(body) >= SMALLEST else body for body in bodies]


class BodyDecoder:
    """Decompresses the bodies of one run."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._plain = zstandard.ZstdDecompressor()
        self._by_number: dict[int, zstandard.ZstdDecompressor] = {}

    def knows(self, number: int) -> bool:
        """Return whether a dictionary is known."""
        return number in self._by_number

    def add(self, number: int, body: bytes) -> None:
        """Add a stored dictionary."""
        content = self._unpack(self._plain, body)
        dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        self._by_number[number] = zstandard.ZstdDecompressor(dict_data=dictionary)

    def decode(self, encoded: Encoded) -> bytes:
        """Return a body exactly as it was appended; UnreadableError if it is damaged or its codec is unknown."""
        if encoded.codec == "raw":
            return encoded.body
        if encoded.codec != "zstd":
            raise UnreadableError(f"{self._where} has a body in the unknown codec {encoded.codec!r}; update WSAP.")
        if encoded.dictionary is None:
            return self._unpack(self._plain, encoded.body)
        decompressor = self._by_number.get(encoded.dictionary)
        if decompressor is None:
            raise UnreadableError(
                f"{self._where} lacks its dictionary {encoded.dictionary}; restore a backup of the database."
            )
        return self._unpack(decompressor, encoded.body)

    def _unpack(self, decompressor: zstandard.ZstdDecompressor, body: bytes) -> bytes:
        try:
            # The declared size is checked first: a forged body must not exhaust the memory.
            if zstandard.frame_content_size(body) > LARGEST_BODY:
                raise UnreadableError(f"{self._where} has a body whose declared size is above the maximum.")
            return decompressor.decompress(body)
        except zstandard.ZstdError as error:
            raise UnreadableError(
                f"{self._where} has a damaged body ({error}); restore a backup of the database."
            ) from None
