"""Other tools read what is exported. Each test is skipped where its tool is missing; `nox -s exports` has them all."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from wsap_core.errors import MissingServiceError
from wsap_eval.commands.writing import write
from wsap_eval.export.inspect import file_name, model_name
from wsap_eval.planning.suite import Entrant
from wsap_eval.reading import played_of

MakeResults = Callable[..., Path]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Inspect's, with pandas 3.1
def test_inspect_reads_its_logs(make_results: MakeResults) -> None:
    folder = make_results()
    try:
        from inspect_ai.log import read_eval_log
    except ModuleNotFoundError:
        with pytest.raises(MissingServiceError, match=r"pip install .*wsap-eval\[inspect\]'"):
            write(folder, "inspect", out=None, database=None)
        pytest.skip("inspect-ai is not installed")
    paths = write(folder, "inspect", out=None, database=None)
    row = played_of(folder).rows()[1]
    log = read_eval_log(str(paths[1]))
    assert (log.status, log.eval.model, log.eval.packages) == ("success", "openai/x", {"wsap-core": "0.1.0"})
    assert log.results is not None
    score = log.results.scores[0]
    assert (score.name, score.metrics["mean"].value) == ("levels", row.figure.mean)
    samples = {sample.id: sample for sample in log.samples or []}
    assert len(samples) == 6
    assert samples[1].scores["levels"].value == 0.0  # forfeited: the worst
    assert samples[2].error.message == "The provider did not answer."
    assert samples[2].scores is None
    pytest.importorskip("pandas")
    from inspect_ai.analysis import samples_df

    assert samples_df(str(folder / "inspect"), quiet=True)["score_levels"].count() == 11


def test_every_eval_ever_is_of_its_schema(make_results: MakeResults, tmp_path: Path) -> None:
    folder = make_results()
    paths = write(folder, "every-eval-ever", out=tmp_path / "eee", database=None)
    whole, lines = json.loads(paths[2].read_text()), [json.loads(line) for line in paths[3].read_text().splitlines()]
    row = played_of(folder).rows()[1]
    result = whole["evaluation_results"][0]
    assert result["score_details"]["score"] == row.figure.mean
    assert row.figure.interval is not None
    assert result["score_details"]["uncertainty"]["confidence_interval"]["lower"] == row.figure.interval.low
    assert (result["metric_config"]["min_score"], result["metric_config"]["max_score"]) == (0, 8)
    assert [line["evaluation"]["score"] for line in lines if line["sample_id"] == "1"] == [0.0]
    assert len(lines) == 5  # the failed one has no score
    assert (tmp_path / "eee" / whole["detailed_evaluation_results"]["file_path"]) == paths[3]
    try:
        schemas = metadata.distribution("every-eval-ever").locate_file("every_eval_ever/schemas")
    except metadata.PackageNotFoundError:
        pytest.skip("every-eval-ever is not installed")
    from jsonschema import Draft7Validator

    for name, documents in (("eval", [whole]), ("instance_level_eval", lines)):
        schema = json.loads(Path(str(schemas), f"{name}.schema.json").read_text())
        assert schema["version"] == "0.3.0"
        for document in documents:
            Draft7Validator(schema).validate(document)


def test_labels_make_file_names_that_stay_apart() -> None:
    names = {file_name(label) for label in ("a/b", "a b", "a-b", "../a-b", "", "x" * 300)}
    assert len(names) == 6
    assert all(len(name) < 80 and "/" not in name and not name.startswith(".") for name in names)


def test_the_model_of_an_entrant_has_a_provider() -> None:
    assert model_name(Entrant(agent="openai/gpt-5")) == "openai/gpt-5"
    assert model_name(Entrant(agent="llm", options={"model": "ollama/qwen3:8b"})) == "ollama/qwen3:8b"
    assert model_name(Entrant(agent="random")) == "wsap/random"
    assert model_name(Entrant(agent="./mine.py:Agent")) == "wsap/./mine.py:Agent"
