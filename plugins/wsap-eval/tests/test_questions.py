"""Lists of questions as games."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.cli import main as wsap
from wsap_core.errors import PluginError, UsageError
from wsap_core.protocol import Action
from wsap_core.seams.context import Context
from wsap_eval import Question, questions
from wsap_eval.cli import main
from wsap_eval.reading import played_of
from wsap_nexus.api import play

MODEL = 'scripted/reply,model.reply={"action":"b"},style=json,label=m'
COLOURS = Question("The sky?", "b", ("Red", "Blue"))


def answer(kind: type, action: str, seed: int = 0, **parameters: str) -> tuple[bool, float, bool]:
    result = kind(Context(seed=seed)).act(Action(action, parameters))
    return result.success, result.reward, result.done


def test_answers_are_scored_by_choice_exactly_or_by_a_function() -> None:
    chosen = questions([COLOURS])
    assert answer(chosen, "b") == (True, 1.0, True)
    assert answer(chosen, "a") == (True, 0.0, True)
    assert answer(chosen, "answer", text="Blue")[0] is False
    exact = questions([("2 + 2", "Four"), ("3 + 3", "six")])
    assert answer(exact, "answer", text="  FOUR. ") == (True, 1.0, True)
    assert answer(exact, "answer", seed=1, text="four") == (True, 0.0, True)
    near = questions([("2 + 2", "4")], lambda said, question: 0.5 if question.answer in said else 0.0)
    assert answer(near, "answer", text="it is 4")[1] == 0.5
    mixed = questions([COLOURS, ("2 + 2", "4")])
    assert answer(mixed, "answer", seed=1, text="4") == (True, 1.0, True)
    assert answer(mixed, "a", seed=1)[0] is False
    assert answer(mixed, "b", seed=0) == (True, 1.0, True)


def test_what_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    for line, why in (
        ('{"question": "a?", "answer": "b"}\n{"question": "c?"}', "Line 2 of .* has no answer"),
        ("nothing", "Line 1 of .* is not JSON"),
        ("[1]", "Line 1 of .* is no object"),
        ("", "has no questions"),
        ('{"question": "a?", "answer": "c", "choices": ["x", "y"]}', "'c', is none of its choices"),
        ('{"question": "a?", "answer": "x", "choices": ["x", "X"]}', "Question 1 needs 2 to 26 choices that differ"),
        ('{"question": " ", "answer": "x"}', "Question 1 has no text"),
    ):
        path.write_text(line)
        with pytest.raises(UsageError, match=why):
            questions(path)
    with pytest.raises(UsageError, match="Question 1 has no choices"):
        questions([("a", "b")], "choice")
    with pytest.raises(UsageError, match="scoring is exact, choice or a function, not 'fuzzy'"):
        questions([("a", "b")], "fuzzy")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Question 1 is not a pair of texts"):
        questions(["ab"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="There are 1 questions, so seeds are from 0 to 0; 1 has none"):
        questions([("a", "b")])(Context(seed=1))
    with pytest.raises(PluginError, match="The score of question 1 is 2; it must be from 0 to 1"):
        answer(questions([("a", "b")], lambda said, question: 2), "answer", text="b")
    with pytest.raises(PluginError, match="Scoring question 1 failed: KeyError"):
        answer(questions([("a", "b")], lambda said, question: {}["x"]), "answer", text="b")


def test_lists_are_read_from_csv_and_with_the_names_of_inspect(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('input,target,choices\n"One, or two?",B,one | two\n')
    (found,) = questions(path).questions
    assert found == Question("One, or two?", "two", ("one", "two"))
    lines = tmp_path / "q.jsonl"
    lines.write_text('{"input": "How many?", "target": 12}\n\n')
    assert questions(lines).questions == (Question("How many?", "12"),)


@pytest.mark.slow
def test_an_evaluation_of_a_list_asks_each_question_and_refuses_a_changed_list_and_more_seeds(tmp_path: Path) -> None:
    lines = [{"question": f"{n} + 1?", "answer": "a" if n % 2 else "b", "choices": ["yes", "no"]} for n in range(4)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    file = tmp_path / "quiz.py"
    file.write_text(
        "from pathlib import Path\nfrom wsap_eval import questions\n"
        "Quiz = questions(Path(__file__).with_name('q.jsonl'))\n"
    )
    words = ["--game", f"{file}:Quiz", "--entrant", MODEL, "--jobs", "1"]
    words += ["--entrant", "always,action=a", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, [*words, "--seeds", "4"])
    assert result.exit_code == 0, result.output
    rows = {row.of: row for row in played_of(tmp_path / "out").rows()}
    assert [(row.score, row.metric) for row in rows.values()] == [(0.5, "correct")] * 2
    assert {r.seed: r.value for r in played_of(tmp_path / "out").records if r.entrant == "always,action=a"} == {
        0: 0, 1: 1, 2: 0, 3: 1,
    }  # fmt: skip
    assert played_of(tmp_path / "out").records[0].conditions["game"].startswith("quiz.py ")
    more = CliRunner().invoke(main, [*words, "--seeds", "5"])
    assert "There are 4 questions, so seeds are from 0 to 3; 4 has none" in more.output + str(more.exception)
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines[::-1])))
    changed = CliRunner().invoke(main, [*words, "--seeds", "4"])
    assert "q.jsonl changed" in str(changed.exception)


def test_a_small_model_is_asked_the_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The short text of an observation in general holds nothing of it."""
    database = str(tmp_path / "runs.db")
    options = {"model": "scripted/x", "model.reply": '{"action": "b"}', "profile": "brief"}
    done = play(questions([COLOURS]), "llm", agent_options=options, database=database)
    assert wsap(["replay", str(done.run), "--calls", "--database", database]) == 0
    shown = capsys.readouterr().out
    assert "The sky?" in shown
    assert "b) Blue" in shown
