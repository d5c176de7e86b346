"""The store of minds: held by one, read by anybody, replaced as a whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wsap_core.errors import (
    NotADatabaseError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageVersionError,
    UnknownNameError,
    UsageError,
)
from wsap_nexus.minds import LIVES, Life, Mind, Minds, check_name, write_whole

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
LIFE = st.builds(Life, st.integers(1, 50), TEXT, TEXT, TEXT, TEXT, TEXT, st.integers(0, 10**9))
NAMES = st.sampled_from(["ada", "bob-2", "c"])
JSON: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(TEXT, st.integers() | TEXT | st.booleans(), max_size=3)


@st.composite
def minds(draw: st.DrawFn) -> Mind:
    mind = Mind("", draw(TEXT), draw(st.binary(max_size=200)), draw(JSON), (), draw(st.integers(0, 9)), draw(TEXT))
    for life in draw(st.lists(LIFE, max_size=4)):
        mind = mind.with_life(life)
    return mind


class Store(RuleBasedStateMachine):
    """Whatever is done, and whichever write fails half-way, the files hold what a dictionary would."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.minds = Minds(Path(self.folder.name) / "minds")
        self.model: dict[str, Mind] = {}

    @rule(name=NAMES, mind=minds())
    def write(self, name: str, mind: Mind) -> None:
        with self.minds.hold(name) as held:
            held.write(mind)
        self.model[name] = Mind(name, mind.kind, mind.memory, mind.options, mind.lives, mind.revision, mind.saved_by)

    @rule(name=NAMES, mind=minds(), step=st.sampled_from(["fsync", "replace", "write"]))
    def fail_to_write(self, name: str, mind: Mind, step: str) -> None:
        with pytest.MonkeyPatch.context() as patch, self.minds.hold(name) as held:

            def fail(*_: object, **__: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            if step == "replace":
                patch.setattr(Path, "replace", fail)
            else:
                patch.setattr(os, "fsync" if step == "fsync" else "fdopen", fail)
            with pytest.raises(StorageFullError, match="Make room"):
                held.write(mind)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        with self.minds.hold(name) as held:
            held.remove()
        self.model.pop(name, None)

    @rule(name=NAMES, rest=st.binary(max_size=20))
    def leave_behind_what_a_crash_does(self, name: str, rest: bytes) -> None:
        with self.minds.hold(name):
            (self.minds.place / f".{name}.json.new").write_bytes(rest)

    @precondition(lambda self: self.model)
    @rule(name=NAMES)
    def hold_twice(self, name: str) -> None:
        locked = pytest.raises(StorageLockedError, match="in another run")
        with self.minds.hold(name), locked, self.minds.hold(name):
            pass

    @invariant()
    def holds_what_was_written(self) -> None:
        if not hasattr(self, "model"):
            return
        assert self.minds.names() == sorted(self.model)
        for name in ("ada", "bob-2", "c"):
            assert self.minds.find(name) == self.model.get(name)
        if self.minds.place.exists():
            assert stat.S_IMODE(self.minds.place.stat().st_mode) == 0o700
            files = [path for path in self.minds.place.iterdir() if path.suffix == ".json"]
            assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestStore = Store.TestCase
TestStore.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)


@pytest.mark.parametrize(
    "name",
    [
        *("", "..", "../ada", "a/b", "a\\b", "/etc/passwd", "Ada", "ada.json", "-ada", "ada-", "a" * 41, "con"),
        *("lpt1", "a\n", "ä", "a b", "a\x00", ".ada"),
    ],
)
def test_a_name_that_is_none_touches_no_file(name: str, tmp_path: Path) -> None:
    store = Minds(tmp_path / "minds")
    with pytest.raises(UsageError, match="is no name for a mind"):
        store.find(name)
    with pytest.raises(UsageError), store.hold(name):
        pass
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
def test_a_name_that_is_one_stays_in_its_folder(name: str) -> None:
    try:
        check_name(name)
    except UsageError:
        return
    assert Minds("place").path(name).parent == Path("place")
    assert name.isascii()


def test_a_mind_that_is_not_there_is_none_or_unknown(tmp_path: Path) -> None:
    store = Minds(tmp_path / "minds")
    assert store.names() == []
    assert store.find("ada") is None
    with store.hold("ada") as held:
        held.write(Mind("ada", "facts"))
    with pytest.raises(UnknownNameError, match=r"no mind called 'adda'\. Did you mean 'ada'"):
        store.read("adda")


@pytest.mark.parametrize(
    ("content", "error", "reason"),
    [
        (b"", StorageError, "is damaged"),
        (b"{", StorageError, "is damaged"),
        (b"\xff\xfe", StorageError, "is damaged"),
        (b"[" * 100_000, StorageError, "is damaged"),
        (b'{"format": "wsap-mind"}', StorageError, "is damaged"),
        (b'{"format": "wsap-mind", "version": 99}', StorageVersionError, "newer WSAP"),
        (b'{"name": "my notes"}', NotADatabaseError, "is something else"),
    ],
)
def test_a_file_that_is_no_mind_is_told_in_a_sentence(
    content: bytes, error: type[StorageError], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "ada.json").write_bytes(content)
    with pytest.raises(error, match=reason):
        Minds(tmp_path).read("ada")


@given(st.sampled_from(["kind", "memory", "options", "lives", "revision", "saved_by"]), JSON | st.integers() | TEXT)
def test_a_field_of_another_type_is_damage_and_nothing_worse(field: str, value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Minds(folder)
        with store.hold("ada") as held:
            held.write(Mind("ada", "facts", b"x", {}, (Life(1, "run", "game"),)))
        path = store.path("ada")
        path.write_text(json.dumps({**json.loads(path.read_bytes()), field: value}))
        try:
            found = store.read("ada")
        except StorageError:
            return
        assert isinstance(found, Mind)


def test_a_persona_lies_beside_the_mind_and_outlives_it(tmp_path: Path) -> None:
    store = Minds(tmp_path)
    assert store.persona("ada") is None
    (tmp_path / "ada.md").write_text("You are Ada.\n", encoding="utf-8")
    with store.hold("ada") as held:
        held.write(Mind("ada", "facts"))
        held.remove()
    assert store.names() == []
    assert store.persona("ada") == "You are Ada."


def test_a_mind_lists_its_newest_lives() -> None:
    mind = Mind("ada", "facts")
    for number in range(1, LIVES + 3):
        mind = mind.with_life(Life(mind.next_number(), f"run-{number}", "game"))
    assert [mind.lives[0].number, mind.lives[-1].number, len(mind.lives)] == [3, LIVES + 2, LIVES]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageReadOnlyError), Minds(tmp_path / "minds").hold("ada"):
            pass
    finally:
        tmp_path.chmod(0o700)


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".ada.json.new").symlink_to(victim)
    write_whole(tmp_path / "ada.json", b"{}")
    assert victim.read_text() == "precious"


WRITER = """
import sys
from wsap_nexus.minds import Mind, Minds
with Minds(sys.argv[1]).hold("ada") as held:
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        held.write(Mind("ada", "facts", bytes([number % 256]) * 300_000, revision=number))
        print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is a POSIX signal")
def test_a_process_killed_while_it_writes_leaves_a_whole_mind_and_no_lock(tmp_path: Path) -> None:
    store = Minds(tmp_path / "minds")
    newest = 0
    for kill in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(store.place)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(2 + kill):
                line = process.stdout.readline()
            process.kill()
            # What it said was written before it died, it had written.
            said = [int(found) for found in (line, *process.stdout.readlines()) if found.strip().isdigit()]
        newest = said[-1] if said else newest
        mind = store.read("ada")
        assert mind.revision >= newest
        assert mind.memory == bytes([mind.revision % 256]) * 300_000
        with store.hold("ada"):
            pass


def test_a_persona_that_is_no_text_is_refused(tmp_path: Path) -> None:
    minds = Minds(tmp_path)
    minds.path("ada").with_suffix(".md").write_bytes(b"I am\xff")
    with pytest.raises(NotADatabaseError, match="The persona of the mind 'ada'"):
        minds.persona("ada")
