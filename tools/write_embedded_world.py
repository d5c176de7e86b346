"""Write `docs/reference/embedded-world.md` from the definitions and the constants of the embedded engine.

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

The rules of the world that `wsap tes3mp serve` and `wsap play morrowind` have built in. It is a coast of its own, with
its own names and stories. `python tools/write_embedded_world.py` generates this page from the engine.

An agent needs nothing of this page: people, doors, the journal (the `name` of an active quest) and refusals say it all.

## What a seed decides

People's names; who took the lens, who holds the key, and where the lens lies; the recipe; which gift pleases whom; the
order of answers; where people, creatures, plants and containers are, and what containers hold; the chandler's wares;
the weather; how much people like a newcomer, and what it carries; every blow. One seed with the same commands gives
the same trajectory, in any process. A snapshot holds everything.

## Time

- Stepped, time goes on with commands only. In real time it goes on by itself, and a command takes its time.
- A second is {state.GAME_SECONDS:g} seconds of the world's day, which lasts {DAY:g} seconds and begins at
  {state.FIRST_HOUR:g} o'clock.
- A body walks {acting.SPEED:g} m a second, in rain and thunder two thirds of it. It walks within a cell; doors lead
  to others.
- Outside, entities are seen from 60 m, at night and in fog or thunder from 30 m; doors from the whole cell.
- At dawn (6 o'clock) plants grow, creatures live again, the chandler has new wares and gold, and the sea has brought
  some gold into the wreck on Lamp Rock if it was empty.
- `wait` heals a point in four seconds, inside in two, and ends early when the body is hurt.

## Bodies

- Reach is {state.REACH:g} m, for things, people and blows.
- A body carries {state.CAPACITY:g}; with more it can neither walk nor pass doors until something is dropped
  (`interact` with the item's id and `interaction_type` `drop`), put into a container or given away (`use_item`).
- `use_item` readies weapons and armour or puts them away, eats and drinks, gives to a person, puts into a container.
- `combat_action` knows {", ".join(f"`{action}`" for action in acting.ACTIONS)}. A blow takes {acting.BLOW:g} s
  and hits seven times in ten; who blocks takes half the damage until its next command; fleeing works
  seven times in ten. Creatures notice bodies within 9 m, at night 13.5 m.
- Who dies does nothing until a respawn: in the inn, with half its health, without a third of its gold.
- Items that other worlds send arrive as what their id or name tells (a sword is a weapon), or as curiosities.

## Goodwill

A new topic is worth a point, a gift that pleases 12, any other gift 1; a person says what pleases under `yourself`.
An attack on a person costs 30. Wrong answers cost what the tables below say.
"""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def condition(needs: Needs) -> str:
    """Return in words when something is open."""
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
    text += "\nPower is the damage of a weapon, the protection of armour, the health that food and potions give.\n"
    text += "\n## Creatures\n\n" + table(
        ("name", "health", "damage", "lives at", "leaves"),
        (
            (one.name, one.health, one.damage, ", ".join(cells[cell].name for cell in dict.fromkeys(one.cells)),
             ", ".join(f"{count} {item}" for item, count in one.drop.items()))
            for one in defined.creatures.values()
        ),
    )  # fmt: skip
    text += "\n## Quests\n\nIn braces is what the seed chose.\n"
    for key, quest in defined.quests.items():
        rows = [(0, quest.begins), *((stage, hint or "completed") for stage, hint in quest.stages.items())]
        text += f"\n`{key}`, {quest.title}:\n\n" + table(("stage", "what the journal says"), rows)
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
