"""Transfer of learners that is known by construction."""

from __future__ import annotations

import csv
import html
import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.errors import UsageError
from wsap_eval.cli import main
from wsap_eval.planning.suite import Entrant
from wsap_eval.reading import played_of
from wsap_eval.results import read_results
from wsap_eval.transfer.plan import Plan
from wsap_eval.transfer.run import measure, read_measured

HERE = Path(__file__).parent / "learners.py"


def plan(learner: str, **changes: object) -> Plan:
    given = {"lives": 6, "seeds": 4, "learning": 2, "steps": None} | changes
    return Plan(f"{HERE}:Stones", (f"{HERE}:Sand",), Entrant(agent=f"{HERE}:{learner}"), **given)  # type: ignore[arg-type]


KNOWN = [("Helped", 6.0, "helps"), ("Learner", 0.0, "none shown"), ("Harmed", -6.0, "harms")]


@pytest.mark.parametrize(("learner", "effect", "words"), KNOWN)
@pytest.mark.slow
def test_transfer_is_measured_with_its_sign_and_size(tmp_path: Path, learner: str, effect: float, words: str) -> None:
    (verdict,) = measure(plan(learner, arms=("blank", "placebo", "source")), tmp_path, seed=1).verdicts
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


@pytest.mark.slow
def test_practice_lessons_and_what_is_gone_on_with(tmp_path: Path) -> None:
    whole = plan("Helped", lives=3, seeds=2)
    measured = measure(whole, tmp_path, seed=1)
    (verdict,) = measured.verdicts
    assert verdict.means["practised"] == verdict.means["source"]  # the same rule is learned in both
    assert verdict.means["raw"] == verdict.means["blank"]  # the rule is a lesson, and raw has none
    assert verdict.share.value == pytest.approx(1.0)
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["sha256"] == measured.plan.digest
    assert len(written["memories"]) == 6
    before = (tmp_path / "episodes.jsonl").read_bytes()
    again = measure(whole, tmp_path)
    assert again.plan == measured.plan, "random seeds are kept"
    assert again.verdicts[0].means == verdict.means
    assert (tmp_path / "episodes.jsonl").read_bytes() == before
    with pytest.raises(UsageError, match="another plan"):
        measure(plan("Helped", lives=3, seeds=3), tmp_path)
    with pytest.raises(UsageError, match=f"with the seed {measured.plan.seed}"):
        measure(whole, tmp_path, seed=measured.plan.seed ^ 1)
    assert (tmp_path / "episodes.jsonl").read_bytes() == before, "nothing of the other plan was played"
    with pytest.raises(UsageError, match="holds a transfer measurement"):
        played_of(tmp_path)  # its table would take episodes for lives
    assert len(played_of(tmp_path, table=False).records) == len(before.splitlines())


@pytest.mark.slow
def test_every_arm_of_a_life_plays_the_lifes_own_seeds_and_learns_on_none_of_them(tmp_path: Path) -> None:
    whole = measure(plan("Helped", lives=2, seeds=2), tmp_path).plan
    records = read_results(tmp_path)[1].values()
    tested = [record for record in records if record.entrant != "learning"]
    for life in whole.all_lives():
        for arm in whole.arms:
            assert {r.seed for r in tested if (r.repeat, r.entrant) == (life, arm)} == set(whole.target_seeds(life))
    assert not set(whole.target_seeds(0)) & set(whole.target_seeds(1))
    assert not {r.seed for r in tested} & {r.seed for r in records if r.entrant == "learning"}


@pytest.mark.slow
def test_an_agent_without_a_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no memory"):
        measure(plan("Forgetful", lives=2, seeds=2), tmp_path)


@pytest.mark.slow
def test_test_seeds_are_drawn_after_learning_and_stand_in_no_file_that_others_may_read(tmp_path: Path) -> None:
    first, second = (measure(plan("Helped", lives=2, seeds=2), tmp_path / name).plan for name in "ab")
    assert (first.seed, first.test_seed) != (second.seed, second.test_seed)
    written = (tmp_path / "a" / "plan.json").read_text()
    seeds = [seed for life in first.all_lives() for seed in first.target_seeds(life)]
    assert not [seed for seed in (*seeds, first.test_seed) if str(seed) in written]
    assert json.loads(written)["test_seeds_sha256"] == first.commitment
    assert stat.S_IMODE((tmp_path / "a" / "test-seed").stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_given_seed_repeats_a_measurement(tmp_path: Path) -> None:
    first, second = (measure(plan("Helped", lives=2, seeds=2), tmp_path / name, seed=7) for name in "ab")
    assert first.plan == second.plan
    assert first.verdicts == second.verdicts


@pytest.mark.slow
def test_a_memory_that_holds_the_seeds_of_its_tests_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"memory of life 0 in .* holds the number .*, which is the seed of one"):
        measure(plan("Cheat", lives=2, seeds=2), tmp_path, seed=7)
    # It knows how seeds follow from --seed, and can't know one that is drawn later.
    measure(plan("Cheat", lives=2, seeds=2), tmp_path / "drawn")


LESSONS = [
    ("numbers", "at 17 go up by 4096"), ("short", "use red key, not axe"), ("one word", "amber"),
    ("sentence", "In these worlds always choose amber stones first, whatever others may say."),
    ("числа", "на 17 шаге 4096"), ("короткие", "ешь у дуба, не у рва"), ("слово", "янтарь"),
    ("предложение", "В этих мирах всегда бери сначала янтарные камни, что бы ни говорили другие."),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "lesson"), LESSONS, ids=[kind for kind, _ in LESSONS])
@pytest.mark.parametrize(("helps", "words"), [(0.3, "helps"), (-0.3, "harms"), (0.0, "none shown")])
def test_whatever_form_a_lesson_has_its_transfer_is_measured(
    tmp_path: Path, kind: str, lesson: str, helps: float, words: str
) -> None:
    learner = {"helps": str(helps), "lesson": lesson}
    whole = replace(plan("Teachable", arms=("blank", "placebo", "source")), entrant=Entrant(
        agent=f"{HERE}:Teachable", options=learner))  # fmt: skip
    (verdict,) = measure(whole, tmp_path, seed=1).verdicts
    assert verdict.words == words
    assert verdict.means["placebo"] == verdict.means["blank"]
    assert not verdict.caveat


@pytest.mark.slow
def test_a_placebo_that_changes_play_by_itself_is_told(tmp_path: Path) -> None:
    (verdict,) = measure(plan("Distracted", arms=("blank", "placebo", "source")), tmp_path, seed=1).verdicts
    assert verdict.words == "none shown"
    assert verdict.caveat.startswith("Beware: with the placebo alone the agent plays worse than without a memory")


@pytest.mark.slow
def test_a_measurement_is_not_continued_with_an_edited_agent(tmp_path: Path) -> None:
    copy = tmp_path / "learners_copy.py"
    copy.write_text(HERE.read_text())
    given = replace(
        plan("Learner", lives=2, seeds=2, arms=("placebo", "source")),
        source=f"{copy}:Stones", targets=(f"{copy}:Sand",), entrant=Entrant(agent=f"{copy}:Learner"),
    )  # fmt: skip
    measure(given, tmp_path / "out")
    copy.write_text(HERE.read_text() + "\n# edited\n")
    with pytest.raises(UsageError, match=r"learners_copy\.py changed\. Name another folder with --out\."):
        measure(given, tmp_path / "out")


@pytest.mark.slow
def test_a_measurement_is_shown_and_written_from_its_folder_with_the_printed_digits(tmp_path: Path) -> None:
    words = ["transfer", "--from", f"{HERE}:Stones", "--to", f"{HERE}:Sand", "--entrant", f"{HERE}:Helped"]
    words += ["--lives", "3", "--seeds", "2", "--learning", "2", "--seed", "5", "--negative", f"{HERE}:Sand"]
    runner, folder = CliRunner(), str(tmp_path / "out")
    played = runner.invoke(main, [*words, "--out", folder])
    assert played.exit_code == 0, played.output
    shown = runner.invoke(main, ["show", folder])
    assert shown.output == played.stdout
    assert re.search("difference +mean +95 % interval over lives", shown.output)
    assert "The measurement failed: the verdict on the negative control" in shown.output
    told = json.loads(runner.invoke(main, ["show", folder, "--json"]).output)
    assert told["targets"] == json.loads(runner.invoke(main, [*words, "--out", folder, "--json"]).output)["targets"]
    (file,) = runner.invoke(main, ["export", folder, "--format", "csv"]).output.split()
    rows = list(csv.DictReader(Path(file).read_text().splitlines()))
    head = told["targets"][0]["comparisons"][0]["lives"]["effect"]
    assert (rows[0]["arm"], rows[0]["other"]) == ("source", "placebo")
    assert float(rows[0]["difference"]) == head["difference"]
    (page,) = runner.invoke(main, ["export", folder, "--format", "html"]).output.split()
    text = html.unescape(re.sub("<[^>]*>", "|", Path(page).read_text()))
    for line in shown.output.splitlines():
        for cell in re.split("  +", line.strip()):
            assert cell in text
    assert "<script" not in Path(page).read_text()
    refused = runner.invoke(main, ["export", folder, "--format", "inspect"])
    assert "can't be written as inspect; there are: csv, jsonl, html" in str(refused.exception)


def test_a_measurement_without_tests_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no transfer measurement"):
        read_measured(tmp_path)
