"""Transfer of learners that is known by construction."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import UsageError
from wsap_eval.memories import permuted
from wsap_eval.reading import played_of
from wsap_eval.results import read_results
from wsap_eval.suite import Entrant
from wsap_eval.transfer.plan import Plan
from wsap_eval.transfer.run import measure

HERE = Path(__file__).parent / "learners.py"


def plan(learner: str, **changes: object) -> Plan:
    given = {"lives": 6, "seeds": 4, "learning": 2, "steps": None} | changes
    return Plan(f"{HERE}:Stones", (f"{HERE}:Sand",), Entrant(agent=f"{HERE}:{learner}"), **given)  # type: ignore[arg-type]


KNOWN = [("Helped", 6.0, "helps"), ("Learner", 0.0, "none shown"), ("Harmed", -6.0, "harms")]


@pytest.mark.parametrize(("learner", "effect", "words"), KNOWN)
def test_transfer_is_measured_with_its_sign_and_size(tmp_path: Path, learner: str, effect: float, words: str) -> None:
    (verdict,) = measure(plan(learner, arms=("blank", "placebo", "source")), tmp_path).verdicts
    # Of 20 rounds 30 % more are right: 6 points. The same seed draws the same numbers in all arms.
    interval = verdict.headline.effect.interval
    if effect:
        assert interval is not None
        assert effect in interval
    else:
        assert verdict.means["source"] == verdict.means["placebo"] == verdict.means["blank"]
    assert verdict.words == words
    # The placebo says nothing: it plays as if nothing had been learned, draw for draw.
    assert verdict.means["placebo"] == verdict.means["blank"]


def test_practice_lessons_and_what_is_gone_on_with(tmp_path: Path) -> None:
    whole = plan("Helped", lives=3, seeds=2)
    (verdict,) = measure(whole, tmp_path).verdicts
    assert verdict.means["practised"] == verdict.means["source"]  # the same rule is learned in both
    assert verdict.means["raw"] == verdict.means["blank"]  # the rule is a lesson, and raw has none
    assert verdict.share.value == pytest.approx(1.0)
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["sha256"] == whole.digest
    assert len(written["memories"]) == 6
    before = (tmp_path / "episodes.jsonl").read_bytes()
    again = measure(whole, tmp_path)
    assert again.verdicts[0].means == verdict.means
    assert (tmp_path / "episodes.jsonl").read_bytes() == before
    with pytest.raises(UsageError, match="another"):
        measure(plan("Helped", lives=3, seeds=2, seed=9), tmp_path)
    assert (tmp_path / "episodes.jsonl").read_bytes() == before, "nothing of the other plan was played"
    with pytest.raises(UsageError, match="holds a transfer measurement"):
        played_of(tmp_path)  # its table would take episodes for lives
    assert len(played_of(tmp_path, table=False).records) == len(before.splitlines())


def test_every_arm_of_a_life_plays_the_lifes_own_seeds_and_learns_on_none_of_them(tmp_path: Path) -> None:
    whole = plan("Helped", lives=2, seeds=2)
    measure(whole, tmp_path)
    records = read_results(tmp_path)[1].values()
    tested = [record for record in records if record.entrant != "learning"]
    for life in whole.all_lives():
        for arm in whole.arms:
            assert {r.seed for r in tested if (r.repeat, r.entrant) == (life, arm)} == set(whole.target_seeds(life))
    assert not set(whole.target_seeds(0)) & set(whole.target_seeds(1))
    assert not {r.seed for r in tested} & {r.seed for r in records if r.entrant == "learning"}


def test_an_agent_without_a_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no memory"):
        measure(plan("Forgetful", lives=2, seeds=2), tmp_path)


@given(st.lists(st.text("abcdefgh .,", max_size=60), min_size=1, max_size=6))
def test_permuted_texts_have_the_same_long_words_each_in_the_place_of_another(texts: list[str]) -> None:
    changed = permuted(texts)
    before, after = (re.findall(r"[a-z]{4,}", "|".join(found)) for found in (texts, changed))
    assert [len(text.split()) for text in changed] == [len(text.split()) for text in texts]
    assert set(after) == set(before)
    assert len(set(before)) < 2 or all(a != b for a, b in zip(before, after, strict=True))
    assert len(set(zip(before, after, strict=True))) == len(set(before))  # one word for one, everywhere
    assert changed == permuted(texts)
