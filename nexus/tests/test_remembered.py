"""What is remembered of models between runs, and how fast they are measured to be."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import StorageReadOnlyError
from wsap_core.seams.agent import Usage
from wsap_core.seams.model import Finish, Message, Reply, Request, collect
from wsap_core.seams.model_errors import ServerFailedError
from wsap_llm.backends.meter import Meter, Metered, Pace
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.models import remembered
from wsap_nexus.models.remembered import Known, Remembered

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PACE = Pace(calls=4, prompt_tokens=4000, completion_tokens=200, seconds=10.0, first_seconds=2.0)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"WSAP_HOME": str(tmp_path / "home")}


def test_what_is_written_reads_back_and_only_its_owner_may_read_it(environ: dict[str, str]) -> None:
    kept = Remembered("openai/x", True, NOON.isoformat(), {"openai/x": Known(0.5, 2.0, 3, 1.5, 60.0, 40.0)})
    remembered.write(kept, environ)
    path = remembered.place(environ)
    assert remembered.read(environ) == kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["models.json"]


def test_nothing_is_remembered_where_there_is_no_file(environ: dict[str, str]) -> None:
    assert remembered.read(environ) == Remembered()
    assert not remembered.place(environ).parent.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"default": 3}', '{"default": "a/b", "chosen": true, "since": "",'])
def test_a_damaged_file_is_told_and_mended_by_the_next_use(text: str, environ: dict[str, str]) -> None:
    path = remembered.place(environ)
    path.parent.mkdir()
    path.write_text(text)
    found = remembered.read(environ)
    assert found.default is None
    assert str(path) in found.damage
    remembered.write(remembered.used(found, "openai/x", PACE, NOON), environ)
    assert remembered.read(environ).default == "openai/x"
    assert not remembered.read(environ).damage


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: st.dictionaries(
    st.sampled_from(["default", "chosen", "since", "models", "a/b", "calls", "price_in"]), inner)))  # fmt: skip
def test_whatever_json_the_file_holds_reading_never_fails(data: object) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        environ = {"WSAP_HOME": folder}
        remembered.place(environ).write_text(json.dumps(data))
        found = remembered.read(environ)
        assert found.default is None or isinstance(found.default, str)


def test_the_model_used_last_is_the_default_and_its_pace_is_kept(environ: dict[str, str]) -> None:
    first = remembered.used(Remembered(), "openai/a", PACE, NOON)
    second = remembered.used(first, "openai/b", PACE, NOON)
    assert (second.default, second.chosen) == ("openai/b", False)
    assert second.known("openai/a") == Known(None, None, 4, 2.5, 50.0, 20.0)


def test_a_chosen_model_stays_the_default_until_it_is_forgotten() -> None:
    kept = remembered.chosen(Remembered(), "openai/a", price_in=1.0, price_out=2.0, now=NOON)
    kept = remembered.used(kept, "openai/b", PACE, NOON)
    assert (kept.default, kept.chosen) == ("openai/a", True)
    kept = remembered.forgotten(kept)
    assert (kept.default, kept.chosen) == (None, False)
    assert kept.known("openai/a").price_out == 2.0
    assert remembered.used(kept, "openai/b", PACE, NOON).default == "openai/b"


def test_one_request_for_measuring_replaces_no_longer_measurement_and_sets_no_default() -> None:
    once = Pace(calls=1, completion_tokens=10, seconds=1.0)
    fresh = remembered.measured(Remembered(), "openai/a", once)
    assert fresh.default is None
    assert fresh.known("openai/a").seconds_a_call == 1.0
    long = remembered.used(Remembered(), "openai/a", PACE, NOON)
    assert remembered.measured(long, "openai/a", once) == long


def test_only_so_many_models_are_remembered_and_the_latest_stay(environ: dict[str, str]) -> None:
    kept = Remembered()
    for number in range(remembered.KEPT + 5):
        kept = remembered.used(kept, f"openai/{number}", PACE, NOON)
    kept = remembered.used(kept, "openai/9", PACE, NOON)
    remembered.write(kept, environ)
    names = list(remembered.read(environ).models)
    assert len(names) == remembered.KEPT
    assert names[-1] == "openai/9"
    assert "openai/0" not in names


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageReadOnlyError, match="set WSAP_HOME"):
        remembered.write(Remembered("a/b"), {"WSAP_HOME": str(tmp_path / "file" / "home")})


def test_the_meter_measures_whole_calls_and_the_wait_for_the_first_piece() -> None:
    moments = iter([0.0, 0.5, 2.0, 10.0, 11.0, 14.0])
    meter = Meter(lambda: next(moments))
    replies = [Reply("four words are here", finish=Finish(usage=Usage(1, 30, 10, None))) for _ in range(2)]
    backend = Metered(ScriptedBackend(replies), meter, "openai/x")

    async def main() -> None:
        for _ in range(2):
            await collect(backend, Request([Message("user", "Hello?")]))

    asyncio.run(main())
    pace = meter.pace("openai/x")
    assert (pace.calls, pace.prompt_tokens, pace.completion_tokens) == (2, 60, 20)
    assert (pace.seconds_a_call, pace.first_token) == (3.0, 0.75)
    assert meter.tokens_per_second == pytest.approx(20 / 6)


def test_a_call_that_failed_is_in_no_average() -> None:
    meter = Meter()
    backend = Metered(ScriptedBackend([ServerFailedError("no")]), meter)
    with pytest.raises(ServerFailedError):
        asyncio.run(collect(backend, Request([Message("user", "Hello?")])))
    assert meter.tokens_per_second is None
    assert meter.paces == {}
