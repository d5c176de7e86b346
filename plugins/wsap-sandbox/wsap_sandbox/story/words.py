"""What pages and logs of stories say around the story, in each language."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "tick": "Tick",
        "of": "of",
        "characters": "Characters",
        "everybody": "everybody",
        "places": "Places",
        "everywhere": "everywhere",
        "search": "Search",
        "found": "Scenes found",
        "nothing": "Nothing fits.",
        "earlier": "Earlier",
        "later": "Later",
        "newest": "Newest",
        "rests": "What this rests on",
        "map": "Map at tick",
        "present": "There:",
        "prompts": "Prompts:",
        "seen": "noticed by",
        "trigger": "trigger",
        "intention": "Meant to",
        "memory": "Remembers",
        "feels": "Feels",
        "wants": "Wants",
        "degraded": "Replaced, because the model's reply could not be used:",
        "success": "success",
        "partial": "partial success",
        "failure": "failure",
        "script": "This page needs JavaScript to show the story.",
        "story": "The story",
    },
    "ru": {
        "tick": "Такт",
        "of": "из",
        "characters": "Персонажи",
        "everybody": "все",
        "places": "Места",
        "everywhere": "везде",
        "search": "Поиск",
        "found": "Найдено сцен",
        "nothing": "Ничего не подходит.",
        "earlier": "Раньше",
        "later": "Позже",
        "newest": "Последний",
        "rests": "На чём это основано",
        "map": "Карта на такте",
        "present": "Там были:",
        "prompts": "Промпты:",
        "seen": "заметили",
        "trigger": "триггер",
        "intention": "Намерение",
        "memory": "Помнит",
        "feels": "Состояние",
        "wants": "Хочет",
        "degraded": "Заменено, потому что ответ модели не годился:",
        "success": "успех",
        "partial": "частичный успех",
        "failure": "неудача",
        "script": "Чтобы показать историю, странице нужен JavaScript.",
        "story": "История",
    },
}
"""Language -> name -> word; the same names in each."""


def words_of(language: str) -> Mapping[str, str]:
    """Return the words of a language; English for one that is not known."""
    return WORDS.get(language, WORDS["en"])
