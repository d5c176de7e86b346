"""The reader of the owner's data files, on files that are written here in their format."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import ConfigError
from wsap_tes3mp.engines.tes3mp.esm import GameData, read_data
from wsap_tes3mp.engines.tes3mp.facts import body_of


def part(kind: str, data: bytes | str) -> bytes:
    """A subrecord; text ends with a zero."""
    raw = data.encode("cp1252") + b"\0" if isinstance(data, str) else data
    return struct.pack("<4sI", kind.encode(), len(raw)) + raw


def record(kind: str, *parts: bytes) -> bytes:
    """A record of the game's format."""
    data = b"".join(parts)
    return struct.pack("<4sIII", kind.encode(), len(data), 0, 0) + data


HEAD = record("TES3", part("HEDR", struct.pack("<fI32s256sI", 1.3, 1, b"the tests", b"", 0)))
FILE = b"".join(
    [
        HEAD,
        record("GMST", part("NAME", "sSomething"), part("STRV", "words")),
        record(
            "WEAP", part("NAME", "Iron_Sword"), part("FNAM", "Iron Sword"), part("WPDT", struct.pack("<f28x", 12.5)),
        ),
        record("ARMO", part("NAME", "cap"), part("FNAM", "Caf\u00e9 Cap"), part("AODT", struct.pack("<If16x", 0, 3.1))),
        record("APPA", part("NAME", "mortar"), part("AADT", struct.pack("<IffI", 0, 0.5, 5.0, 10))),
        record("LIGH", part("NAME", "torch"), part("LHDT", struct.pack("<fIiIII", 3.0, 1, 9, 5, 0, 2))),
        record("LIGH", part("NAME", "lamp_of_the_wall"), part("LHDT", struct.pack("<fIiIII", 0, 0, 9, 5, 0, 0))),
        record("MISC", part("NAME", "gold_001"), part("FNAM", "Gold"), part("MCDT", struct.pack("<fII", 0.0, 1, 0))),
        record("MISC", part("NAME", "cursed"), part("MCDT", struct.pack("<fII", float("nan"), 1, 0))),
        record("NPC_", part("NAME", "old_ferris"), part("FNAM", "Old Ferris"), part("NPDT", b"\0" * 52)),
        record("CREA", part("NAME", "moss_rat"), part("FNAM", "Moss Rat")),
        record("DOOR", part("NAME", "ex_door_02"), part("FNAM", "Door")),
        record("CONT", part("NAME", "chest_small"), part("FNAM", "Chest")),
        record("CELL", part("NAME", "Ferris' House"), part("DATA", struct.pack("<iii", 1, 0, 0)),
               part("FRMR", b"\1\0\0\0"), part("NAME", "old_ferris"), part("DATA", b"\0" * 24)),
        record("CELL", part("NAME", "Mossford"), part("DATA", struct.pack("<iii", 2, -3, -2)), part("RGNN", "Shore")),
        record("CELL", part("NAME", "Mossford"), part("DATA", struct.pack("<iii", 2, -2, -2))),
        record("CELL", part("NAME", ""), part("DATA", struct.pack("<iii", 2, 9, 9))),
        record("DIAL", part("NAME", "weather"), part("DATA", b"\0")),
        record("INFO", part("INAM", "1"), part("DATA", b"\0" * 12), part("NAME", b"It rains."), part("QSTF", b"\1")),
        record("DIAL", part("NAME", "A_Quest"), part("DATA", b"\4\0\0\0")),
        record("INFO", part("INAM", "2"), part("DATA", struct.pack("<Ii4x", 4, 0)), part("NAME", b"The Lost Rake"),
               part("QSTN", b"\1")),
        record("INFO", part("INAM", "3"), part("DATA", struct.pack("<Ii4x", 4, 10)), part("NAME", b"I look for it.")),
        record("INFO", part("INAM", "4"), part("DATA", struct.pack("<Ii4x", 4, 100)), part("NAME", b"It is found."),
               part("QSTF", b"\1")),
    ]
)  # fmt: skip


def read(path: Path, content: bytes = FILE, **options: Any) -> GameData:
    path.write_bytes(content)
    return read_data([path], **options)


def test_names_kinds_weights_cells_and_quests_are_read(tmp_path: Path) -> None:
    data = read(tmp_path / "own.esm")
    assert (data.find("iron_sword").name, data.find("IRON_SWORD").weight, data.find("iron_sword").kind) == (
        "Iron Sword",
        12.5,
        "item",
    )
    assert (data.find("cap").name, data.find("cap").weight) == ("Caf\u00e9 Cap", 3.1)
    assert (data.find("mortar").name, data.find("mortar").weight) == (None, 5.0)
    assert (data.find("torch").kind, data.find("lamp_of_the_wall").kind) == ("item", None)
    assert (data.find("gold_001").weight, data.find("cursed").weight) == (0.0, None)
    kinds = [data.find(ref).kind for ref in ("old_ferris", "moss_rat", "ex_door_02", "chest_small", "nothing")]
    assert kinds == ["npc", "creature", "door", "container", None]
    assert (data.cell("-3, -2"), data.cell("9, 9"), data.cell("ferris' house")) == ("Mossford", None, "Ferris' House")
    assert data.description("mossford") == "-3, -2"
    assert data.description("Mossford", -12000.0, -16000.0) == "-2, -2"
    assert data.description("4, -7") == "4, -7"
    assert (data.description("FERRIS' HOUSE"), data.description("Nowhere")) == ("Ferris' House", None)
    assert (data.quests["a_quest"].name, data.quests["a_quest"].finished) == ("The Lost Rake", {100})  # fmt: skip
    assert "weather" not in data.quests


def test_a_perception_takes_names_weights_and_ends_of_quests_from_the_files(tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "cell": "-3, -2", "x": 0, "y": 0, "z": 0, "health": {"current": 0.2, "max": 40}, "strength": 40,
        "inventory": [{"ref_id": "iron_sword", "count": 2}, {"ref_id": "gold_001", "count": 9}],
        "journal": [{"quest": "a_quest", "index": 100}, {"quest": "another", "index": 1}],
        "entities": [{"id": "1-0", "ref_id": "moss_rat", "kind": "actor", "x": 3, "y": 4, "z": 0}],
    }  # fmt: skip
    body: Any = body_of(facts, names=read(tmp_path / "own.esm"))
    assert body["location"]["cell"] == "Mossford"
    assert body["inventory_summary"] == {"gold": 9, "item_count": 2, "encumbrance_pct": 0.125}
    assert body["fidelity"]["inventory_summary.encumbrance_pct"] == "derived"
    assert [row["name"] for row in body["inventory"]] == ["Gold", "Iron Sword"]
    assert body["active_quests"] == [{"quest_id": "another", "name": "another", "stage": 1}]
    assert body["completed_quests"] == [{"quest_id": "a_quest", "name": "The Lost Rake", "stage": 100}]
    assert (body["nearby_entities"][0]["name"], body["nearby_entities"][0]["entity_type"]) == ("Moss Rat", "creature")
    assert body["health"]["current"] == 1
    facts["inventory"].append({"ref_id": "unheard_of", "count": 1})
    body = body_of(facts, names=read(tmp_path / "own.esm"))
    assert (body["inventory_summary"]["encumbrance_pct"], body["inventory_summary"]["item_count"]) == (0.0, 3)
    assert body["fidelity"]["inventory_summary.encumbrance_pct"] == "unavailable"


def test_a_folder_is_read_masters_first_and_then_by_age(tmp_path: Path) -> None:
    def named(name: str, file: str, age: int) -> None:
        (tmp_path / file).write_bytes(HEAD + record("MISC", part("NAME", "cup"), part("FNAM", name)))
        os.utime(tmp_path / file, (age, age))

    named("new plugin", "a.ESP", 300)
    named("old plugin", "b.esp", 200)
    named("master", "z.esm", 400)
    (tmp_path / "readme.txt").write_text("not read", encoding="utf-8")
    assert read_data([tmp_path]).find("cup").name == "new plugin"
    (tmp_path / "c.esp").write_bytes(HEAD + record("MISC", part("NAME", "CUP"), part("DELE", b"\0\0\0\0")))
    assert read_data([tmp_path]).find("cup").name is None


def test_text_of_another_code_page_is_read_when_it_is_named(tmp_path: Path) -> None:
    content = HEAD + record("MISC", part("NAME", "cup"), part("FNAM", "Чаша".encode("cp1251")))
    assert read(tmp_path / "own.esm", content, encoding="cp1251").find("cup").name == "Чаша"


def test_what_is_no_data_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not start with TES3"):
        read(tmp_path / "a.esm", b"PK\3\4" + b"\0" * 40)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no \.esm or \.esp file"):
        read_data([tmp_path / "empty"])
    with pytest.raises(ConfigError, match="can't be read"):
        read_data([tmp_path / "missing.esm"])
    with pytest.raises(ConfigError, match=f"the record at byte {len(HEAD)} is truncated"):
        read(tmp_path / "b.esm", HEAD + struct.pack("<4sIII", b"WEAP", 2**32 - 1, 0, 0) + b"short")


@given(
    cuts=st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.binary(max_size=12)), max_size=6),
    end=st.integers(0, len(FILE)),
)
@pytest.mark.slow
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[tuple[int, bytes]], end: int
) -> None:
    content = bytearray(FILE)
    for at, junk in cuts:
        content[at : at + len(junk)] = junk
    path = tmp_path_factory.getbasetemp() / "damaged.esm"
    try:
        data = read(path, bytes(content[:end]))
    except ConfigError:
        return
    body_of({"cell": "-3, -2", "x": 0, "y": 0, "z": 0, "health": {"current": 1, "max": 2}}, names=data)


def test_a_file_that_claims_to_be_large_takes_no_more_memory_than_it_is(tmp_path: Path) -> None:
    path = tmp_path / "large.esm"
    size = 64 * 1024 * 1024
    with path.open("wb") as file:  # sparse: one record as large as the file says, and in it one large subrecord
        file.write(HEAD + struct.pack("<4sIII4sI", b"MISC", size + 8, 0, 0, b"NAME", size))
        file.truncate(len(HEAD) + 16 + 8 + size)
    tracemalloc.start()
    try:
        assert read_data([path]).objects == {}
        assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    finally:
        tracemalloc.stop()
