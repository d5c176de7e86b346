"""A model in this process that knows nothing: bound to the schema, it gives every belief that it is asked for.

Needs torch, transformers and a library that constrains, as the tests of `wsap-outlines` do.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wsap_tossim.tournament.plan import Settings, entrants_of
from wsap_tossim.tournament.run import run_tournament

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")
testing = pytest.importorskip("wsap_outlines.testing", reason="needs wsap-outlines")
pytest.importorskip("wsap_nexus", reason="needs the runtime (wsap-nexus)")
OPTIONS = {"mode": "five", "rules": "quick", "longest_game": 1}


def test_random_weights_bound_to_the_schema_leave_no_question_unanswered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    tokenizer = testing.tiny_tokenizer()
    model = testing.tiny_model(tokenizer, context=65_536)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    field = entrants_of(["one=scripted", f"tiny=outlines/{tmp_path / 'model'}"])
    cup = Settings(field, OPTIONS, 1, model_options={"max_tokens": 400, "strict": True}, beliefs=True)
    outcome = run_tournament(tmp_path / "cup", cup, 1, resamples=2)
    assert outcome.summary["games"] == 1
    (line,) = map(json.loads, (tmp_path / "cup" / "games.jsonl").read_text().splitlines())
    rows = [json.loads(row) for row in (tmp_path / "cup" / "beliefs.jsonl").read_text().splitlines()]
    seats = [n for n, label in enumerate(line["entrants"]) if label == "tiny"]
    assert {row["player"] for row in rows} <= set(seats)
    assert rows, "somebody lived to the end of the first day"
    for row in rows:
        assert set(row["evil"]) == {str(n) for n in range(5)} - {str(row["player"])}
        assert all(chance * 100 % 5 == pytest.approx(0, abs=1e-6) for chance in row["evil"].values())
    (spent,) = outcome.summary["spending"]
    assert spent["belief_calls"] == len(rows)
    values = {(r["entrant"], r["measure"]): r["value"] for r in outcome.summary["measures"]}
    if any(line["roles"][row["player"]] != "Mafioso" for row in rows):
        assert values["tiny", "unanswered"] == 0
        assert values["tiny", "log_loss"] > 0
