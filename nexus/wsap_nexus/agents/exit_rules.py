"""Exit conditions, under which an agent leaves a world automatically: a small language.

    health < 10%                   a number of the observation's status relative to its maximum
    step >= 500                    decisions in this session
    goal_complete                  a flag
    wood >= 3 and not (night or health < 5)
    achievement:collect_diamond    an achievement in this session

Grammar:

    condition  = both, { "or", both }
    both       = single, { "and", single }
    single     = "not", single | "(", condition, ")" | name, [ operator, number, [ "%" ] ]
    operator   = "<" | "<=" | ">" | ">=" | "==" | "!="
    name       = letter, { letter | digit | "_" | ":" | "." | "-" }

An unknown name is false, as is any comparison with it. Nothing is evaluated as code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import ConfigError
from wsap_core.protocol import EmbodiedObservation, Observation
from wsap_nexus.runs.visitor_seat import OWN_GOAL

LONGEST = 500
"""Maximum characters of a condition."""
DEEPEST = 20
"""The maximum depth of nested parentheses and `not`."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)(?P<percent>%)?|(?P<name>[A-Za-z_][A-Za-z0-9_:.\-]*)|(?P<sign><=|>=|==|!=|<|>|\(|\)))"
)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Facts:
    """The values for a condition."""

    numbers: Mapping[str, float]
    maxima: Mapping[str, float]
    """Name -> maximum, for percentages."""
    flags: frozenset[str]


Condition = Callable[[Facts], bool]


def parse_condition(text: str) -> Condition:
    """Return the function of a condition; ConfigError, with the position, on a syntax error."""
    if len(text) > LONGEST:
        raise ConfigError(f"An exit condition may have at most {LONGEST} characters; this one has {len(text)}.")
    parser = _Parser(_tokens(text), text)
    condition = parser.condition(0)
    if parser.at < len(parser.tokens):
        raise parser.wrong("the end")
    return condition


def facts_of(observation: Observation, *, steps: int, reward: float, achievements: Iterable[str]) -> Facts:
    """Return the values for a condition; `steps`, `reward` and `achievements` are those of the session so far."""
    numbers: dict[str, float] = {"step": steps, "reward": reward}
    maxima: dict[str, float] = {}
    flags = {f"achievement:{name}" for name in achievements}
    for source in (observation.inventory, observation.status):
        for name, value in source.items():
            _take(name, value, numbers, maxima, flags)
    if isinstance(observation, EmbodiedObservation) and observation.avatar.max_health:
        numbers["health"] = observation.avatar.health
        maxima["health"] = observation.avatar.max_health
    if observation.time_of_day:
        flags.add(str(observation.time_of_day))
    goals = [goal for goal in observation.current_goals if goal.type != OWN_GOAL]
    if goals and all(g.progress is not None and _complete(g.progress) for g in goals):
        flags.add("goal_complete")
    return Facts(numbers, maxima, frozenset(flags))


def _take(name: str, value: object, numbers: dict[str, float], maxima: dict[str, float], flags: set[str]) -> None:
    key = name.replace(" ", "_")
    if isinstance(value, bool):
        flags.update({key} if value else ())
    elif isinstance(value, int | float):
        numbers[key] = float(value)
    elif isinstance(value, str):
        match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*", value)  # "7/9"
        if match:
            numbers[key], maxima[key] = float(match[1]), float(match[2])
        else:
            flags.add(f"{key}:{value}")


def _complete(progress: object) -> bool:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?)|(%))?\s*", str(progress))
    if match is None:
        return str(progress).strip().lower() in ("done", "complete", "completed", "reached")
    if match[3]:
        return float(match[1]) >= 100
    return float(match[1]) >= float(match[2] or 1)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int
    percent: bool = False


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConfigError(f"The exit condition can't be read at character {at + 1}: {text[at : at + 20]!r}.")
        kind = "number" if match.lastgroup == "percent" else str(match.lastgroup)
        word, start = match[kind], match.start(kind)
        if kind == "name" and word.lower() in ("and", "or", "not"):
            kind, word = "word", word.lower()
        found.append(_Token(kind, word, start, bool(match["percent"])))
        at = match.end()
    return found


class _Parser:
    def __init__(self, tokens: Sequence[_Token], text: str) -> None:
        self.tokens = tokens
        self.at = 0
        self._text = text

    def wrong(self, wanted: str) -> ConfigError:
        """Return the error for a token other than `wanted`."""
        if self.at >= len(self.tokens):
            return ConfigError(f"The exit condition {self._text!r} ends too early: {wanted} is missing.")
        token = self.tokens[self.at]
        return ConfigError(
            f"The exit condition {self._text!r} can't be read at character {token.at + 1}: "
            f"expected {wanted}, not {token.text!r}."
        )

    def condition(self, depth: int) -> Condition:
        """Parse one or more parts with `or` between."""
        parts = [self._both(depth)]
        while self._take("word", "or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else lambda facts: any(part(facts) for part in parts)

    def _both(self, depth: int) -> Condition:
        parts = [self._single(depth)]
        while self._take("word", "and"):
            parts.append(self._single(depth))
        return parts[0] if len(parts) == 1 else lambda facts: all(part(facts) for part in parts)

    def _single(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise ConfigError(f"The exit condition is nested more than {DEEPEST} levels deep.")
        if self._take("word", "not"):
            inner = self._single(depth + 1)
            return lambda facts: not inner(facts)
        if self._take("sign", "("):
            inner = self.condition(depth + 1)
            if not self._take("sign", ")"):
                raise self.wrong("')'")
            return inner
        name = self._take("name")
        if name is None:
            raise self.wrong("a name")
        return self._comparison(name.text)

    def _comparison(self, name: str) -> Condition:
        if self.at >= len(self.tokens) or self.tokens[self.at].text not in _COMPARE:
            return lambda facts: name in facts.flags or bool(facts.numbers.get(name, 0))
        compare = _COMPARE[self.tokens[self.at].text]
        self.at += 1
        number = self._take("number")
        if number is None:
            raise self.wrong("a number")
        limit, percent = float(number.text), number.percent

        def holds(facts: Facts) -> bool:
            value = facts.numbers.get(name)
            if value is None:
                return False
            if not percent:
                return compare(value, limit)
            most = facts.maxima.get(name)
            return most is not None and most > 0 and compare(100 * value / most, limit)

        return holds

    def _take(self, kind: str, text: str | None = None) -> _Token | None:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == kind and (text is None or token.text == text):
                self.at += 1
                return token
        return None
