"""Bodies made small: zstandard with a dictionary for each kind of event in a run.

Successive observations of a world are mostly the same text. The first few bodies of a kind
therefore serve as the dictionary of all that follow: no training, a few kilobytes for a run,
and any event can still be read by itself. A body of Crafter's size (5 KB) takes about 150 bytes
so, a fifth of what zstandard leaves without a dictionary, in about 3 µs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import zstandard

from wsap_core.errors import StorageError

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

_STREAMS = 64
# So many dictionaries are kept ready for writing, about half a megabyte each; a nexus may have
# thousands of runs, and one that comes back after others simply gets a new dictionary.


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
    """The bodies of one kind in one run."""

    samples: list[bytes] = field(default_factory=list)
    compressor: zstandard.ZstdCompressor | None = None
    number: int | None = None


class BodyEncoder:
    """Compresses bodies; one for a writer, used by one thread."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL)
        self._streams: OrderedDict[tuple[str, str], _Stream] = OrderedDict()
        self._numbers: dict[str, int] = {}

    def start_run(self, run_id: str, dictionaries: int) -> None:
        """Say how many dictionaries a run has already, before its first body is encoded."""
        self._numbers[run_id] = dictionaries

    def encode(self, run_id: str, kind: str, bodies: Sequence[bytes]) -> tuple[list[Encoded], NewDictionary | None]:
        """Return bodies of one kind as they are stored, in the same order, and a dictionary if one was made."""
        stream = self._stream(run_id, kind)
        made = None
        if stream.compressor is None:
            stream.samples += bodies[: DICTIONARY_SAMPLES - len(stream.samples)]
            if len(stream.samples) >= DICTIONARY_SAMPLES:
                made = self._make_dictionary(run_id, kind, stream)
        compressor = stream.compressor or self._plain
        packed = _compress(compressor, bodies)
        encoded = [
            Encoded("zstd", stream.number, small) if len(small) < len(body) else Encoded("raw", None, body)
            for body, small in zip(bodies, packed, strict=True)
        ]
        return encoded, made

    def _stream(self, run_id: str, kind: str) -> _Stream:
        key = (run_id, kind)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
            if len(self._streams) > _STREAMS:
                self._streams.popitem(last=False)
        else:
            self._streams.move_to_end(key)
        return stream

    def _make_dictionary(self, run_id: str, kind: str, stream: _Stream) -> NewDictionary | None:
        content = b"".join(stream.samples)[-DICTIONARY_BYTES:]
        stream.samples.clear()
        if len(content) < SMALLEST * DICTIONARY_SAMPLES:
            return None
        number = self._numbers.get(run_id, 0) + 1
        self._numbers[run_id] = number
        dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        # Once for each dictionary, never twice: a second call crashes in zstandard 0.25.
        dictionary.precompute_compress(level=LEVEL)
        stream.compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)
        stream.number = number
        return NewDictionary(run_id, number, kind, self._plain.compress(content))


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
