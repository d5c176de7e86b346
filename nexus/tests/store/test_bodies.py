"""Bodies come back byte for byte, whatever they were compressed with, and take little room."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_nexus.store.log import bodies
from wsap_nexus.store.log.bodies import DICTIONARY_SAMPLES, BodyDecoder, BodyEncoder, Encoded, NewDictionary


def observation(n: int, world: str = "crafter") -> bytes:
    rng = random.Random(n)
    cells = "".join(rng.choice("....T#~C") for _ in range(63))
    goals = ",".join(f'{{"goal":"{world} {i}","hint":"do, facing it","open":{i % 3}}}' for i in range(60))
    return f'{{"map":"{cells}","goals":[{goals}],"step":{n}}}'.encode()


def decoder(made: list[NewDictionary], run_id: str = "run") -> BodyDecoder:
    """A decoder with the dictionaries of one run, as a reader has it."""
    decoder = BodyDecoder(run_id)
    for new in made:
        if new.run_id == run_id:
            decoder.add(new.number, new.body)
    return decoder


@given(
    st.lists(st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 50).map(observation)), max_size=12), max_size=6)
)
@pytest.mark.slow
def test_bodies_come_back_as_they_were_however_they_are_grouped(groups: list[list[bytes]]) -> None:
    encoder = BodyEncoder()
    stored: list[Encoded] = []
    made: list[NewDictionary] = []
    for group in groups:
        encoded, new = encoder.encode("run", "step", group)
        stored += encoded
        made += [new] if new else []
    reader = decoder(made)
    assert [reader.decode(one) for one in stored] == [body for group in groups for body in group]


def test_a_dictionary_made_of_the_first_bodies_makes_the_rest_much_smaller() -> None:
    encoder = BodyEncoder()
    first, none_yet = encoder.encode("run", "step", [observation(n) for n in range(DICTIONARY_SAMPLES - 1)])
    assert none_yet is None
    last, made = encoder.encode("run", "step", [observation(n) for n in range(100, 120)])
    assert made is not None
    assert all(one.dictionary == made.number for one in last)
    plain = sum(len(one.body) for one in first) / len(first)
    helped = sum(len(one.body) for one in last) / len(last)
    assert helped < plain / 2


def test_a_world_that_becomes_another_gets_a_new_dictionary_and_one_that_stays_does_not() -> None:
    changing, steady = BodyEncoder(), BodyEncoder()
    written = [observation(n, "meadow" if n < 30 else "cave of stalagmites") for n in range(120)]
    stored: list[Encoded] = []
    made: list[NewDictionary] = []
    for body in written:
        encoded, new = changing.encode("run", "step", [body])
        stored += encoded
        made += [new] if new else []
    assert [new.number for new in made] == [1, 2]
    reader = decoder(made)
    assert [reader.decode(one) for one in stored] == written
    assert len(stored[100].body) < len(stored[35].body) / 2
    assert sum(steady.encode("run", "step", [observation(n)])[1] is not None for n in range(200)) == 1


def test_bodies_that_have_nothing_in_common_get_no_dictionary_and_take_no_more_room_than_they_have() -> None:
    noise = [random.Random(n).randbytes(500) for n in range(20)]
    encoded, made = BodyEncoder().encode("run", "snapshot", [*noise, b"", b"x"])
    assert made is None
    assert encoded == [Encoded("raw", None, body) for body in [*noise, b"", b"x"]]


def test_each_kind_of_each_run_has_a_dictionary_of_its_own_numbered_within_the_run() -> None:
    encoder = BodyEncoder()
    encoder.start_run("resumed", 4)
    made = [
        encoder.encode(run, kind, [observation(n, kind) for n in range(DICTIONARY_SAMPLES)])[1]
        for run in ("fresh", "resumed")
        for kind in ("step", "prompt")
    ]
    assert [(new.run_id, new.number, new.kind) for new in made if new] == [
        ("fresh", 1, "step"),
        ("fresh", 2, "prompt"),
        ("resumed", 5, "step"),
        ("resumed", 6, "prompt"),
    ]


def test_many_runs_at_once_share_little_memory_and_still_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_READY", 3)
    monkeypatch.setattr(bodies, "_RUNS", 6)
    encoder = BodyEncoder()
    stored: dict[str, list[Encoded]] = {}
    given: dict[str, list[bytes]] = {}
    made: list[NewDictionary] = []
    rng = random.Random(5)
    for turn in range(300):
        run = f"run-{rng.randrange(9)}"
        group = [observation(turn * 10 + n, run) for n in range(rng.randrange(1, 6))]
        encoded, new = encoder.encode(run, "step", group)
        stored.setdefault(run, []).extend(encoded)
        given.setdefault(run, []).extend(group)
        made += [new] if new else []
    assert len(encoder._ready) <= 3
    assert len(encoder._streams) <= 6
    assert len({(new.run_id, new.number) for new in made}) == len(made) > 9
    for run, encoded in stored.items():
        reader = decoder(made, run)
        assert [reader.decode(one) for one in encoded] == given[run]


def test_runs_of_one_world_share_a_compressor_and_each_has_its_own_copy_of_the_dictionary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "_READY", 2)
    compressors = 0
    make = bodies._with_dictionary

    def counted(content: bytes) -> object:
        nonlocal compressors
        compressors += 1
        return make(content)

    monkeypatch.setattr(bodies, "_with_dictionary", counted)
    encoder, runs = BodyEncoder(), [f"run-{n}" for n in range(30)]
    stored: dict[str, list[Encoded]] = {run: [] for run in runs}
    made: list[NewDictionary] = []
    for step in range(30):
        for number, run in enumerate(runs):
            encoded, new = encoder.encode(run, "step", [observation(1000 * number + step)])
            stored[run] += encoded
            made += [new] if new else []
    assert [new.run_id for new in made] == runs
    assert compressors <= len(runs) + 3, "one for each run, to see what a dictionary of its own would gain"
    for number, run in enumerate(runs):
        reader = decoder(made, run)
        assert [reader.decode(one) for one in stored[run]] == [observation(1000 * number + n) for n in range(30)]


def test_a_run_of_another_world_gets_a_dictionary_of_its_own() -> None:
    encoder = BodyEncoder()
    _, here = encoder.encode("run-1", "step", [observation(n) for n in range(10)])
    there = [f'{{"said":"{random.Random(7).randbytes(400).hex()}","step":{n}}}'.encode() for n in range(10)]
    encoded, other = encoder.encode("run-2", "step", there)
    assert here is not None
    assert other is not None
    assert other.body != here.body
    assert len(encoded[-1].body) < len(there[-1]) / 10
