"""The story of a scene, from what everybody could see."""

from __future__ import annotations

import random

from wsap_sandbox.storyteller.grammar import Form, Lists, sentence
from wsap_sandbox.storyteller.lore import Data, Lore


def story(facts: Data, lore: Lore, number: int, rng: random.Random) -> str:
    """Return a scene as it is told."""
    return _Narrator(facts, lore, number, rng).told()


class _Narrator:
    def __init__(self, facts: Data, lore: Lore, number: int, rng: random.Random) -> None:
        self._facts = facts
        self._lore = lore
        self._say = lore.grammar
        self._number = number
        self._rng = rng
        self._place = facts["place"]
        self._people = list(facts["people"])
        self._events = list(facts["events"])

    def told(self) -> str:
        if not self._people and not self._events and self._rng.random() < 0.9:
            return self._empty()
        parts = [self._empty() if not self._people else str(self._place["moment"])]
        parts += [self._linked(at, str(event["text"])) for at, event in enumerate(self._events)]
        parts += filter(None, [self._colour(), self._looming()])
        return " ".join(sentence(part) for part in parts if part.strip())

    def _linked(self, at: int, text: str) -> str:
        link = self._say.phrase("link", self._rng.randrange(99), {}) if at else ""
        if not link:
            return text
        first = text.split(" ")[0].strip(",:;")
        keeps = self._lore.named(first) is not None or first in {str(one["name"]).split()[0] for one in self._people}
        keeps = keeps or first == "I" or not first[:1].isalpha()
        return link + (text if keeps else text[:1].lower() + text[1:])

    def _empty(self) -> str:
        sky = (int(self._facts["tick"]) // 5 * 7 + int(self._facts["tick"]) // 11) % 5
        lists = {
            "alone": self._lore.alone(str(self._place["id"])),
            "tod": self._say.rules[f"tod_{int(self._facts['tick']) % 4}"],
            "sky": self._say.rules[f"sky_{sky}"],
        }
        return self._say.text("empty", self._number, {}, lists)

    def _colour(self) -> str:
        """Somebody speaks, or is alone with their thoughts."""
        if not self._people or self._rng.random() < 0.35:
            return ""
        if len(self._people) == 1:
            return self._text("gaze", self._people[0], None) if self._rng.random() < 0.5 else ""
        one, other = self._rng.sample(self._people, 2)
        return self._text("says" if self._rng.random() < 0.2 else "talk", one, other)

    def _looming(self) -> str:
        stake = self._lore.stake(int(self._facts["tick"]))
        for thing in self._place["objects"]:
            worn = stake is not None and thing["id"] == stake.object and self._lore.stage(thing) > 0
            if worn and self._rng.random() < 0.4:
                slots: dict[str, Form | str] = {"o": self._lore.thing(thing), "cond": str(thing["condition"])}
                return self._say.text("looms", self._number, slots)
        return ""

    def _text(self, rule: str, one: Data, other: Data | None) -> str:
        name = str(one["name"])
        slots: dict[str, Form | str] = {"a": self._lore.person(one)}
        if other is not None:
            slots["b"] = self._lore.person(other)
        things = [thing for thing in self._place["objects"] if thing["condition"]]
        claims = list(self._say.rules["claim"])
        if things:
            thing = things[self._number % len(things)]
            slots |= {"o": self._lore.thing(thing), "cond": str(thing["condition"])}
        else:
            claims = [claim for claim in claims if "{o" not in claim]
        lines = [line.rstrip(".") for line in self._lore.lines(name)]
        lists: Lists = {"way": self._lore.ways(name), "claim": claims, "line": lines, "quoted": self._quoted(lines)}
        return self._say.text(rule, self._number, slots, lists)

    def _quoted(self, lines: list[str]) -> list[str]:
        if self._lore.language == "ru":
            return [f"«{line}» —" if line[-1] in "!?…" else f"«{line}», —" for line in lines]
        return [f'"{line}"' if line[-1] in "!?…" else f'"{line},"' for line in lines]
