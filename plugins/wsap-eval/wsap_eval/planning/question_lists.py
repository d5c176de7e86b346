"""Games from lists of questions with answers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Literal

from wsap_core.errors import PluginError, SnapshotError, UsageError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    Observation,
    ParamDef,
)
from wsap_core.seams.context import Context
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_core.textfile import read_text
from wsap_core.untrusted import error_line, single_line
from wsap_core.worlds.legality import check_action, index_actions

TEXT = "answer"
"""The action that answers a question without choices."""
_NAMES = {"question": ("question", "input"), "answer": ("answer", "target"), "choices": ("choices",)}


@dataclass(frozen=True)
class Question:
    """A question with its right answer."""

    text: str
    answer: str
    """The right answer; of a question with choices the text of one."""
    choices: tuple[str, ...] = ()
    """At most 26; empty if the answer is free text."""


Scorer = Callable[[str, Question], float]
"""Answer and question -> score from 0 to 1, or True or False. The answer to a question with choices is the text of the
chosen one."""
Scoring = Literal["exact", "choice"] | Scorer


@dataclass(frozen=True)
class Asked(Observation):
    """A question."""

    question: str = ""
    choices: Sequence[str] = ()

    def to_text(self) -> str:
        """Return the question with its choices, each with the action that chooses it."""
        options = [f"{letter}) {choice}" for letter, choice in zip(ascii_lowercase, self.choices, strict=False)]
        return "\n".join([self.question, *options])


def questions(
    source: Path | str | Iterable[Question | tuple[str, str]],
    scoring: Scoring | None = None,
    *,
    instruction: str = "",
    name: str = "Questions",
) -> type:
    """Return a game in which each seed from 0 is a question, whose only decision is the answer.

        Capitals = questions(Path(__file__).with_name("capitals.jsonl"))

    Its metric `correct`, from 0 to 1, is the score of the answer.

    Args:
        source: pairs of question and answer, `Question` objects, or a file of them: JSON Lines or CSV with a heading,
            with `question` (or `input`), `answer` (or `target`) and, if there are any, `choices`: a list, in CSV with
            " | " between. The answer may be the letter of a choice.
        scoring: "exact", the same text without regard to case, spaces and a full stop at the end; "choice", each choice
            is an action; or a function of the answer and the question. By default "choice" if all have choices.
        instruction: what a player is told before the question.
        name: the name of the class.

    Raises:
        UsageError: there are no questions, or one has no text, no answer or unsuitable choices; it is named.
        ConfigError: the file can't be read.
    """
    files = [Path(source)] if isinstance(source, Path | str) else []
    asked = _read(files[0]) if files else [q if isinstance(q, Question) else Question(*q) for q in _listed(source)]
    if not asked:
        raise UsageError(f"{files[0] if files else 'The list'} has no questions.")
    asked = [_checked(number, question) for number, question in enumerate(asked, 1)]
    if scoring is None:
        scoring = "choice" if all(question.choices for question in asked) else "exact"
    if scoring not in ("exact", "choice") and not callable(scoring):
        raise UsageError(f"scoring is exact, choice or a function, not {single_line(scoring)[:40]!r}.")
    bare = [number for number, question in enumerate(asked, 1) if not question.choices]
    if scoring == "choice" and bare:
        raise UsageError(f"Question {bare[0]} has no choices, which scoring by choice needs.")
    most = max(len(question.choices) for question in asked)
    actions = [ActionDef(letter, f"Choose {letter}") for letter in ascii_lowercase[:most]]
    if bare:
        actions.append(ActionDef(TEXT, "Answer in a few words", [ParamDef("text", "your answer")]))
    own = {
        "wsap_spec": {
            "score_metrics": (ScoreMetric("correct", "Correct answers", _correct, "", 0.0, 1.0),),
            "wire_types": (Asked,),
            "complete_turns": True,
            "objective": "Your goal is to answer the question correctly.",
        },
        "wsap_data": tuple(files),
        "game_description": instruction or "You are asked one question. Answer it.",
        "action_space": ActionSpace(actions),
        "questions": tuple(asked),
        "score": staticmethod(_same if isinstance(scoring, str) else scoring),
    }
    return type(name, (_Quiz,), own)


class _Quiz:
    """The game of one question."""

    action_space: ActionSpace
    questions: tuple[Question, ...]
    score: Scorer

    def __init__(self, context: Context) -> None:
        self._actions = index_actions(self.action_space)
        self.reset(context.seed)

    def reset(self, seed: int | None = None) -> Observation:
        number = seed or 0
        if number >= len(self.questions):
            count = len(self.questions)
            raise UsageError(f"There are {count} questions, so seeds are from 0 to {count - 1}; {number} has none.")
        self._number, self._done = number, False
        return self.observe()

    def observe(self) -> Observation:
        question = self.questions[self._number]
        count = len(question.choices)
        legal = {letter: place < count for place, letter in enumerate(ascii_lowercase)} | {TEXT: not count}
        return Asked(
            step=int(self._done),
            available_actions=[
                ActionAvailability(name, legal[name] and not self._done, "" if legal[name] else "it is no choice")
                for name in self.action_space.names
            ],
            question=question.text,
            choices=question.choices,
        )

    def act(self, action: Action) -> ActionResult:
        action, why = check_action(action, self._actions)
        question = self.questions[self._number]
        place = ascii_lowercase.find(action.name) if action.name != TEXT else -1
        if not why and (self._done or (place >= len(question.choices) if question.choices else place >= 0)):
            why = "the question is answered" if self._done else "it is no choice"
        if not why and question.choices and place < 0:
            why = "the question has choices"
        if why:
            return ActionResult(False, f"That does not work: {why}", done=self._done, observation=self.observe())
        said = question.choices[place] if question.choices else str(action.parameters.get("text", ""))
        try:
            score = float(self.score(said, question))
        except Exception as error:  # the caller's code
            raise PluginError(
                f"Scoring question {self._number + 1} failed: {type(error).__name__}: {error_line(error)}"
            ) from error
        if not 0 <= score <= 1:
            raise PluginError(f"The score of question {self._number + 1} is {score:g}; it must be from 0 to 1.")
        self._done = True
        return ActionResult(True, "", reward=score, done=True, observation=self.observe())

    def snapshot(self) -> bytes:
        return json.dumps([self._number, self._done]).encode()

    def restore(self, state: bytes) -> None:
        try:
            number, done = json.loads(state)
            self.questions[number]
        except (ValueError, TypeError, IndexError) as error:
            raise SnapshotError("The state is not that of a question of this list.") from error
        self._number, self._done = number, bool(done)


def _correct(episodes: Sequence[EpisodeSummary]) -> float:
    return sum(e.reward for e in episodes) / max(1, len(episodes))


def _same(answer: str, question: Question) -> bool:
    return _plain(answer) == _plain(question.answer)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".").rstrip()


def _listed(source: Any) -> list[Any]:  # Any: what the caller gave
    found = list(source)
    for number, each in enumerate(found, 1):
        pair = isinstance(each, tuple | list) and len(each) == 2 and all(isinstance(word, str) for word in each)
        if not isinstance(each, Question) and not pair:
            raise UsageError(f"Question {number} is not a pair of texts or a Question: {single_line(each)[:60]!r}.")
    return found


def _read(path: Path) -> list[Question]:
    text = read_text(path, "The list of questions")
    if path.suffix.lower() == ".csv":
        rows: list[tuple[int, Any]] = list(enumerate(csv.DictReader(io.StringIO(text)), 2))
    else:
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    rows.append((number, json.loads(line)))
                except ValueError as error:
                    raise UsageError(f"Line {number} of {path} is not JSON: {single_line(error)[:100]}.") from error
    return [_question(f"Line {number} of {path}", row) for number, row in rows]


def _question(where: str, row: Any) -> Question:  # Any: JSON
    if not isinstance(row, Mapping):
        raise UsageError(f"{where} is no object with question and answer.")
    found = {key: next((row[name] for name in names if row.get(name) not in (None, "")), None)
             for key, names in _NAMES.items()}  # fmt: skip
    for key in ("question", "answer"):
        if not isinstance(found[key], str | int | float) or isinstance(found[key], bool):
            raise UsageError(f"{where} has no {key} that is a text or a number.")
    choices = found["choices"] or ()
    choices = choices.split(" | ") if isinstance(choices, str) else choices
    if not isinstance(choices, Sequence):
        raise UsageError(f"{where} has choices that are no list.")
    return Question(str(found["question"]), str(found["answer"]), tuple(str(choice).strip() for choice in choices))


def _checked(number: int, question: Question) -> Question:
    """Return a question whose answer is the text of a choice, if it has choices. Raises UsageError."""
    if not question.text.strip() or not question.answer.strip():
        raise UsageError(f"Question {number} has no {'answer' if question.text.strip() else 'text'}.")
    if not question.choices:
        return question
    if not 2 <= len(question.choices) <= len(ascii_lowercase) or len(set(map(_plain, question.choices))) < len(
        question.choices
    ):
        raise UsageError(f"Question {number} needs 2 to {len(ascii_lowercase)} choices that differ.")
    by_text = {_plain(choice): choice for choice in question.choices}
    by_letter = dict(zip(ascii_lowercase, question.choices, strict=False))
    right = by_text.get(_plain(question.answer)) or by_letter.get(_plain(question.answer).rstrip(")"))
    if right is None:
        raise UsageError(f"The answer of question {number}, {question.answer[:60]!r}, is none of its choices.")
    return Question(question.text, right, question.choices)
