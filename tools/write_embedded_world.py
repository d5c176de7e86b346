"""Write `docs/reference/embedded-world.md` from the definitions and constants of the embedded engine.

    python tools/write_embedded_world.py

A test compares the page with what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from wsap_tes3mp.engines.simulated import acting, state
from wsap_tes3mp.engines.simulated.definitions import Needs, definitions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "embedded-world.md"
SOURCE = ROOT / "plugins" / "wsap-tes3mp" / "wsap_tes3mp" / "engines" / "simulated"
DAY = 86400 / state.GAME_SECONDS
HEAD = f"""# The embedded world of Morrowind's bridge

The rules of the world built into `wsap tes3mp serve` and `wsap play morrowind`: an original coast with
its own names and stories. `python tools/write_embedded_world.py` generates this page from the engine.

Agents do not need this page: people, doors, the journal (the `name` of an active quest) and refusals tell them
everything.

## Effects of the seed

The seed determines people's names; who took the lens, who holds the key, and where the lens is; the recipe; everyone's
favourite gift; the order of answers; the positions of people, creatures, plants and containers, and the contents of
containers; the chandler's wares; the weather; a newcomer's initial disposition and possessions; every blow. The same
seed and commands give the same trajectory, in any process. A snapshot contains the complete state.

## Time

- Stepped, time advances only with commands. In real time it advances by itself, and each command has a duration.
- A second is {state.GAME_SECONDS:g} seconds of the world's day, which lasts {DAY:g} seconds and begins at
  {state.FIRST_HOUR:g} o'clock.
- A body walks {acting.SPEED:g} m a second, two thirds of that in rain and thunder. It walks within a cell; doors lead
  to others.
- Outside, entities are seen from 60 m, at night and in fog or thunder from 30 m; doors from the whole cell.
- At dawn (6 o'clock) plants grow, creatures revive, the chandler has new wares and gold, and the sea brings
  some gold into the wreck on Lamp Rock if it was empty.
- `wait` heals a point in four seconds, inside in two, and ends early if the body is hurt.

## Bodies

- Reach is {state.REACH:g} m, for objects, people and blows.
- A body carries {state.CAPACITY:g}; with more it can neither walk nor pass doors until something is dropped
  (`interact` with the item's id and `interaction_type` `drop`), put into a container or given away (`use_item`).
- `use_item` readies or stows weapons and armour, eats, drinks, gives to a person, and puts into a container.
- `combat_action` has {", ".join(f"`{action}`" for action in acting.ACTIONS)}. A blow takes {acting.BLOW:g} s
  and hits with a probability of 0.7; a blocking body takes half the damage until its next command; fleeing succeeds
  with a probability of 0.7. Creatures notice bodies within 9 m, at night 13.5 m.
- A dead body does nothing until it respawns in the inn, with half its health and without a third of its gold.
- Items from other worlds become what their id or name suggests (a sword is a weapon), or curiosities.

## Disposition

A new topic is worth a point, a favourite gift 12, any other gift 1; people name their favourite gift under `yourself`.
An attack on a person costs 30. The tables below have the cost of wrong answers.
"""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def condition(needs: Needs) -> str:
    """Return a condition as text."""
    parts = []
    if needs.quest:
        parts.append(f"`{needs.quest}` from {needs.since}" + (f" to below {needs.below}" if needs.below < 1000 else ""))
    parts += [f"disposition {needs.disposition}"] if needs.disposition else []
    parts += [f"the {needs.being}"] if needs.being else []
    parts += ["with " + ", ".join(needs.items)] if needs.items else []
    parts += [f"without {needs.without}"] if needs.without else []
    parts += [f"{needs.hours[0]} to {needs.hours[1]} o'clock"] if needs.hours != (0, 24) else []
    return "; ".join(parts)


def page() -> str:
    """Return the page."""
    defined = definitions()
    cells = defined.cells
    text = HEAD + "\n## Places\n\n"
    doors = [
        (cells[a].name, cells[b].name, f"the {door.key}" if door.key else "")
        for door in defined.doors
        for a, b in [door.between]
    ]
    text += table(("from", "to", "opens with"), doors)
    shut = [
        f"{cell.name} is closed from {cell.closes} to {cell.opens} o'clock." for cell in cells.values() if cell.opens
    ]
    text += "\n" + " ".join(shut) + "\n\n## Items\n\n"
    text += table(
        ("id", "name", "kind", "weight", "value", "power"),
        (
            (f"`{key}`", one.name, one.kind, f"{one.weight:g}", one.value, one.power or "")
            for key, one in defined.items.items()
        ),
    )
    text += "\nPower is the damage of a weapon, the protection of armour, or the health from food and potions.\n"
    text += "\n## Creatures\n\n" + table(
        ("name", "health", "damage", "lives at", "drops"),
        (
            (one.name, one.health, one.damage, ", ".join(cells[cell].name for cell in dict.fromkeys(one.cells)),
             ", ".join(f"{count} {item}" for item, count in one.drop.items()))
            for one in defined.creatures.values()
        ),
    )  # fmt: skip
    text += "\n## Quests\n\nThe seed chooses the values in braces.\n"
    for key, quest in defined.quests.items():
        rows = [(0, quest.begins), *((stage, hint or "completed") for stage, hint in quest.stages.items())]
        text += f"\n`{key}`, {quest.title}:\n\n" + table(("stage", "journal entry"), rows)
    text += "\n## Topics\n\n"
    topics = [
        (topic.name, ", ".join(topic.who), condition(topic), "<br>".join(
            [f"“{one.text}” {', '.join(one.effects)}" for one in topic.choices] or [", ".join(topic.effects)]))
        for topic in defined.topics
    ]  # fmt: skip
    text += table(("topic", "who", "open", "answers and effects"), topics)
    uses = ((one.item or "hand", one.on, condition(one), ", ".join(one.effects)) for one in defined.uses)
    text += "\n## Uses\n\n" + table(("item", "on", "works", "effects"), uses)
    return text + "\n## Refusals\n\nCodes of commands that fail: " + ", ".join(f"`{code}`" for code in codes()) + ".\n"


def codes() -> list[str]:
    """Return the codes of the engine's refusals."""
    source = "".join(path.read_text("utf-8") for path in sorted(SOURCE.glob("*.py")))
    return sorted(set(re.findall(r'(?:Refused\(|code, advice = \(|else \()"([A-Z_]+)"', source)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
