"""The words of one language, for what the kernel itself says to whoever plays.

The code says everything in English. A world in another language has its titles, refusals and actions of the body
looked up here: `WORDS["ru"].say("You have acted already.")`. Sentences with something in them are written with fields,
`"There is no action '{name}' here."`, and found again by what stands around these. A field that begins with `_` is
looked up itself. What is not in the table stays as it is, which in a game of that language is the game's own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter


@dataclass(frozen=True)
class Words:
    """The words of one language."""

    language: str
    """Its code, such as `en`."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts and sentences in English -> in this language; none in English."""

    def say(self, text: str) -> str:
        """Return a text of the code in this language; as it is where the table does not have it."""
        if not self.texts or not text:
            return text
        found = self.texts.get(text)
        if found is not None:
            return found
        for (begin, *rest), names, wording in self._sentences:
            if text.startswith(begin) and (values := _between(text, len(begin), rest)) is not None:
                told = dict(zip(names, values, strict=True))
                return wording.format(**{n: self.say(v) if n.startswith("_") else v for n, v in told.items()})
        return text

    def and_also(self, texts: Mapping[str, str]) -> Words:
        """Return these words and more."""
        return Words(self.language, {**self.texts, **texts})

    @cached_property
    def _sentences(self) -> list[tuple[list[str], list[str], str]]:
        found = []
        for text, wording in self.texts.items():
            parts = [(before, name) for before, name, _, _ in Formatter().parse(text)] if "{" in text else []
            names = [name for _, name in parts if name]
            if names and all(name.isidentifier() for name in names):
                literals = [before for before, _ in parts]
                found.append((literals if len(literals) > len(names) else [*literals, ""], names, wording))
        return sorted(found, key=lambda sentence: not sentence[0][0])  # what begins with anything comes last


def _between(text: str, at: int, literals: list[str]) -> list[str] | None:
    """Return what stands between literals, each of which is where it is found first but the last, which is the end."""
    values = []
    for number, literal in enumerate(literals, 1):
        last = number == len(literals)
        end = (len(text) - len(literal) if text.endswith(literal) else -1) if last else text.find(literal, at + 1)
        if end <= at:
            return None
        values.append(text[at:end])
        at = end + len(literal)
    return values


ENGLISH = Words("en")

RUSSIAN = Words(
    "ru",
    {
        # --- observations ---
        "Step {number}": "Шаг {number}",
        "TIME": "ВРЕМЯ",
        "STATUS": "СОСТОЯНИЕ",
        "INVENTORY": "ИНВЕНТАРЬ",
        "EFFECTS": "ЭФФЕКТЫ",
        "LOCATION": "МЕСТО",
        "NEARBY": "ПОБЛИЗОСТИ",
        "RECENT EVENTS": "ЧТО ПРОИЗОШЛО",
        "MESSAGES": "СООБЩЕНИЯ",
        "CURRENT GOALS": "ТЕКУЩИЕ ЦЕЛИ",
        "Goal": "Цель",
        "You have": "У тебя есть",
        "NOT POSSIBLE NOW": "СЕЙЧАС НЕВОЗМОЖНО",
        "POSSIBLE NOW": "СЕЙЧАС ВОЗМОЖНО",
        "yes": "да",
        "no": "нет",
        "beyond counting": "не счесть",
        "here": "здесь",
        "standing": "стоит",
        "broadcast": "всем",
        "direct": "лично",
        "team": "своим",
        " (blocked)": " (не пройти)",
        " ({number} steps left)": " (осталось шагов: {number})",
        " [requires: {conditions}]": " [нужно: {conditions}]",
        "=== AVATAR: {name} ===": "=== АВАТАР: {name} ===",
        "Health: {number}": "Здоровье: {number}",
        "Position: {place}": "Позиция: {place}",
        "Facing: {direction}": "Смотрит: {direction}",
        "Stance: {stance}": "Поза: {stance}",
        # --- actions that every world has ---
        "Leave this avatar and return to menu/nexus": "Покинуть этот аватар и вернуться в меню или нексус",
        "Not in combat": "не в бою",
        "Not falling": "не в падении",
        "Safe location": "в безопасном месте",
        "Turn avatar to face direction or entity": "Повернуться в сторону или лицом к кому-либо",
        "direction or entity_id": "сторона или id того, на кого смотреть",
        "Express emotion through avatar body": "Выразить чувство жестом",
        "Check avatar's body, equipment, status": "Осмотреть себя: тело, снаряжение, состояние",
        "Say something that everyone here hears": "Сказать так, чтобы слышали все вокруг",
        "Tell one other agent something that nobody else hears": "Сказать одному так, чтобы больше никто не слышал",
        "Tell your own team something": "Сказать что-то своей команде",
        "You are in a team": "у тебя есть команда",
        "what to say": "что сказать",
        "the other agent's name": "имя того, кому",
        # --- what comes of an action ---
        "You have left this world.": "Тебя больше нет в этом мире.",
        "You have left your avatar.": "Ты больше не в своём аватаре.",
        "You have left.": "Ты больше не в этом мире.",
        "Left before.": "Выход был раньше.",
        "Left by force: {_why}": "Выход принудительный: {_why}",
        "This world has no way to {action}.": "В этом мире действие {action} невозможно.",
        "Said.": "Сказано.",
        "You are dead.": "Тебя нет в живых.",
        "You are {name} again.": "Ты снова {name}.",
        "You are {name}.": "Ты — {name}.",
        "Health {health} of {most}.": "Здоровье: {health} из {most}.",
        "Status: {status}.": "Состояние: {status}.",
        "You carry nothing.": "У тебя с собой ничего нет.",
        "You carry {items}.": "У тебя с собой: {items}.",
        "You wear {items}.": "На тебе: {items}.",
        "Too late: the round went on without you, with the default action in your place.": (
            "Слишком поздно: раунд прошёл без тебя, за тебя выполнено действие по умолчанию."
        ),
        "You have acted already.": "Твой ход уже сделан.",
        "It is not your turn.": "Сейчас не твой ход.",
        "It is your turn.": "Твой ход.",
        "It is your turn. You get {pay}.": "Твой ход. Ты получаешь {pay}.",
        "The game is over.": "Игра окончена.",
        "The game is over. You get {pay}.": "Игра окончена. Ты получаешь {pay}.",
        "The episode is over; nothing can be done until the next one begins.": (
            "Эпизод окончен; пока не начнётся следующий, сделать ничего нельзя."
        ),
        "Nobody is in the body: {avatar} is {state}. Jack in first.": (
            "В этом теле никого нет: {avatar}, состояние {state}. Сначала войди в него."
        ),
        "That does not work: {_why}": "Не получается: {_why}",
        "You can't leave now: {_why}.": "Сейчас уйти нельзя: {_why}.",
        "There is nothing of note.": "Ничего примечательного.",
        "There is nothing of note ({target}).": "Ничего примечательного ({target}).",
        "There is nothing to {action}.": "Действие {action} здесь ни к чему.",
        "This body has no gestures.": "Это тело не умеет жестикулировать.",
        "{action} is not possible now.": "{action} сейчас невозможно.",
        # --- refusals of messages ---
        "There is nothing to say in an empty message.": "Пустое сообщение ничего не говорит.",
        "That is too long: {length} characters; at most {most}.": "Слишком длинно: знаков {length}, а можно {most}.",
        "There is nobody called '{name}' here; there are: {others}.": "Здесь нет «{name}»; здесь есть: {others}.",
        "A message to oneself reaches nobody.": "Сообщение самому себе никто не услышит.",
        "You are in no team here.": "У тебя здесь нет команды.",
        # --- refusals of actions and parameters ---
        "There is no action '{name}' here. Did you mean {one} or {other}?": (
            "Здесь нет действия {name}. Может быть, {one} или {other}?"
        ),
        "There is no action '{name}' here. Did you mean {one}?": "Здесь нет действия {name}. Может быть, {one}?",
        "There is no action '{name}' here. There are: {some}.": "Здесь нет действия {name}. Есть: {some}.",
        "{action} has no parameter '{name}'; it takes: none.": "У {action} нет параметра {name}; параметров нет вовсе.",
        "{action} has no parameter '{name}'; it takes: {names}.": "У {action} нет параметра {name}; есть: {names}.",
        "{action}: '{name}' is not right: {_why} (expected {_expected}).": (
            "{action}: с параметром {name} что-то не так: {_why} Ожидается: {_expected}."
        ),
        "{action} needs '{name}' ({_expected}).": "Для {action} нужен параметр {name} ({_expected}).",
        "one of {choices}": "одно из: {choices}",
        "a whole number from {low} to {high}": "целое число от {low} до {high}",
        "a whole number of at least {low}": "целое число не меньше {low}",
        "a whole number of at most {high}": "целое число не больше {high}",
        "a whole number": "целое число",
        "a number from {low} to {high}": "число от {low} до {high}",
        "a number of at least {low}": "число не меньше {low}",
        "a number of at most {high}": "число не больше {high}",
        "a number": "число",
        "a list": "список",
        "a list of {count}": "список (элементов: {count})",
        "an object": "объект",
        "true or false": "true или false",
        "text": "текст",
        "string": "текст",
        "{value} must be one of {choices}, not {found}; did you mean {near}?": (
            "вместо {found} нужно одно из: {choices}; может быть, {near}?"
        ),
        "{value} must be one of {choices}, not {found}.": "вместо {found} нужно одно из: {choices}.",
        "{value} must be at most {most} characters long, not {length}.": (
            "знаков должно быть не больше {most}, а их {length}."
        ),
        "{value} must be {_kind}, not {_found}.": "нужно {_kind}, а не {_found}.",
        "{value} must be left out.": "{value} здесь лишнее.",
        "{value} is missing.": "не хватает {value}.",
    },
)

WORDS: Mapping[str, Words] = {words.language: words for words in (ENGLISH, RUSSIAN)}
"""The languages that the kernel speaks, by code."""


def words_of(language: str) -> Words:
    """Return the words of a language; the English ones where the kernel does not speak it."""
    return WORDS.get(language, ENGLISH)
