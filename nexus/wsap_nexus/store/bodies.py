"""Bodies made small: zstandard with a dictionary for each kind of event in a run.

Successive observations of a world are mostly the same text. The first few bodies of a kind
therefore serve as the dictionary of all that follow: no training, a few kilobytes for a run,
and any event can still be read by itself. A body of Crafter's size (7 KB) takes about 300 bytes
so, a quarter of what zstandard leaves without a dictionary, in about 4 µs. Training a dictionary,
or compressing each body against the one before, was measured too: neither is worth its complication.

Where hundreds of runs of one world are written at once, a run takes the dictionary of another if that
helps as much as one of its own would. Each run has its own copy of it in the database; what is shared
is the compressor, of which only so many fit into memory, and which takes longer to make than a body.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import zstandard

from wsap_core.errors import StorageError

K = TypeVar("K")
V = TypeVar("V")

LEVEL = 3
"""zstandard's level: lower ones save no time on bodies of this size, higher ones take thrice it."""

DICTIONARY_SAMPLES = 8
"""How many bodies make a dictionary; more gain nothing measurable."""

DICTIONARY_BYTES = 65536
"""No dictionary is larger; of larger samples it takes the ends."""

SMALLEST = 48
"""Bodies shorter than this, in bytes, are kept as they are."""

LARGEST_BODY = 1 << 28
"""A body may hold at most 256 MiB."""

_READY = 64
# So many compressors are kept ready, about half a megabyte each; one that is needed again later is
# made anew from its dictionary, in a tenth of a millisecond.

_TRIED = 4
# So many dictionaries of other runs are tried before a run gets one of its own.

_NEARLY = 1.15
# Another's dictionary may leave this much more of a body than one's own.

_STREAMS = 10_000
# So many dictionaries are remembered, 2 KB each. A nexus may write more runs than that at once; the
# one that has been quiet longest then gets a new dictionary.


class Encoded(NamedTuple):
    """A body as it is stored."""

    codec: str
    """"raw" or "zstd"."""
    dictionary: int | None
    """The number of the dictionary within the run; None for none."""
    body: bytes
    """What to store."""


class NewDictionary(NamedTuple):
    """A dictionary that has to be stored along with the first bodies that need it."""

    run_id: str
    """The run it belongs to."""
    number: int
    """Its number within the run, from 1."""
    kind: str
    """The kind of event it was made of."""
    body: bytes
    """Its content, compressed."""


@dataclass
class _Stream:
    """The bodies of one kind in one run: samples until there are enough, then their dictionary."""

    samples: list[bytes] = field(default_factory=list)
    number: int | None = None
    packed: bytes = b""
    hopeless: bool = False


class BodyEncoder:
    """Compresses bodies; one for a writer, used by one thread."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL)
        self._streams: OrderedDict[tuple[str, str], _Stream] = OrderedDict()
        self._ready: OrderedDict[bytes, zstandard.ZstdCompressor] = OrderedDict()
        self._made: OrderedDict[str, deque[bytes]] = OrderedDict()
        self._numbers: dict[str, int] = {}

    def start_run(self, run_id: str, dictionaries: int) -> None:
        """Say how many dictionaries a run has already, before its first body is encoded."""
        self._numbers[run_id] = dictionaries

    def encode(self, run_id: str, kind: str, bodies: Sequence[bytes]) -> tuple[list[Encoded], NewDictionary | None]:
        """Return bodies of one kind as they are stored, in the same order, and a dictionary if one was made."""
        key = (run_id, kind)
        stream = _take(self._streams, key, _Stream, keep=_STREAMS)
        made = None
        if stream.number is None and not stream.hopeless:
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
        stream.hopeless = left is None
        if left is None:
            return None
        number = self._numbers.get(run_id, 0) + 1
        self._numbers[run_id] = stream.number = number
        stream.packed = self._of_another(kind, last, left) or self._of_its_own(kind, content)
        return NewDictionary(run_id, number, kind, stream.packed)

    def _left(self, samples: Sequence[bytes]) -> int | None:
        """Return to how many bytes the others bring the last sample; None if they don't halve it.

        Below that, the dictionary itself takes the gain up.
        """
        *others, last = samples
        if len(last) < SMALLEST or not any(others):
            return None
        helped = _with_dictionary(b"".join(others)[-DICTIONARY_BYTES:]).compress(last)
        return len(helped) if len(helped) < 0.5 * len(self._plain.compress(last)) else None

    def _of_another(self, kind: str, body: bytes, left: int) -> bytes | None:
        """Return a dictionary that was made for another run, if it helps as much as one's own."""
        for packed in self._made.get(kind, ()):
            if len(self._compressor(packed).compress(body)) <= _NEARLY * left:
                return packed
        return None

    def _of_its_own(self, kind: str, content: bytes) -> bytes:
        packed = self._plain.compress(content)
        _take(self._made, kind, lambda: deque(maxlen=_TRIED), keep=_STREAMS).append(packed)
        return packed

    def _compressor(self, packed: bytes) -> zstandard.ZstdCompressor:
        return _take(self._ready, packed, lambda: _with_dictionary(zstandard.decompress(packed)), keep=_READY)


def _with_dictionary(content: bytes) -> zstandard.ZstdCompressor:
    dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    # Once for each dictionary, never twice: a second call crashes in zstandard 0.25.
    dictionary.precompute_compress(level=LEVEL)
    return zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)


def _take(known: OrderedDict[K, V], key: K, make: Callable[[], V], *, keep: int) -> V:
    """Return what is known under a key, or make it; of more than `keep`, the longest unused is forgotten."""
    value = known.get(key)
    if value is None:
        value = known[key] = make()
        if len(known) > keep:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return value


def _compress(compressor: zstandard.ZstdCompressor, bodies: Sequence[bytes]) -> list[bytes]:
    """Compress many bodies; those too short to gain come back as they are."""
    worth: list[bytes | bytearray | memoryview] = [body for body in bodies if len(body) >= SMALLEST]
    if len(worth) > 1 and "multi_compress_to_buffer" in zstandard.backend_features:
        # One call for all: it lets go of the interpreter once, not once for each body, and getting
        # it back can take 5 ms while another thread is computing.
        packed = iter(compressor.multi_compress_to_buffer(worth))
        return [next(packed).tobytes() if len(body) >= SMALLEST else body for body in bodies]
    return [compressor.compress(body) if len(body) >= SMALLEST else body for body in bodies]


class BodyDecoder:
    """Gives bodies back as they were; one for a run and reader."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._plain = zstandard.ZstdDecompressor()
        self._by_number: dict[int, zstandard.ZstdDecompressor] = {}

    def knows(self, number: int) -> bool:
        """Tell whether a dictionary was added."""
        return number in self._by_number

    def add(self, number: int, body: bytes) -> None:
        """Add a dictionary as it is stored."""
        content = self._unpack(self._plain, body)
        dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        self._by_number[number] = zstandard.ZstdDecompressor(dict_data=dictionary)

    def decode(self, encoded: Encoded) -> bytes:
        """Return a body, byte for byte as it was appended.

        Raises:
            StorageError: it is damaged, or written by a way of compression not known here.
        """
        if encoded.codec == "raw":
            return encoded.body
        if encoded.codec != "zstd":
            raise StorageError(
                f"{self._where} has a body in the codec {encoded.codec!r}, which this version can't read; update WSAP."
            )
        if encoded.dictionary is None:
            return self._unpack(self._plain, encoded.body)
        decompressor = self._by_number.get(encoded.dictionary)
        if decompressor is None:
            raise StorageError(
                f"{self._where} lacks its dictionary {encoded.dictionary}; restore a copy of the database."
            )
        return self._unpack(decompressor, encoded.body)

    def _unpack(self, decompressor: zstandard.ZstdDecompressor, body: bytes) -> bytes:
        try:
            # The stated size is checked first: a forged body must not fill the memory.
            if zstandard.frame_content_size(body) > LARGEST_BODY:
                raise StorageError(f"{self._where} has a body that claims to be larger than any may be.")
            return decompressor.decompress(body)
        except zstandard.ZstdError as error:
            raise StorageError(f"{self._where} has a damaged body ({error}); restore a copy of the database.") from None
