"""The rules of Crafter as text for the start of a session."""

from __future__ import annotations

from wsap_crafter.game import constants


def _amounts(needed: dict[str, int]) -> str:
    return " + ".join(f"{amount} {item}" for item, amount in needed.items())


def _recipes() -> str:
    lines = []
    for thing, rule in constants.place.items():
        where = ", ".join(rule["where"])
        lines.append(f"- place_{thing}: {_amounts(rule['uses'])}; onto free {where} in front of you")
    for thing, recipe in constants.make.items():
        nearby = " and ".join(f"a {name}" for name in recipe["nearby"])
        lines.append(f"- make_{thing}: {_amounts(recipe['uses'])}; {nearby} adjacent to you (diagonals count)")
    return "\n".join(lines)


DESCRIPTION = f"""\
Crafter is a survival game on a map of 64 by 64 cells, with a day of 300 steps and 10,000 steps at most.

Goal: unlock as many of the 22 achievements as you can, and stay alive. Each new one gives a reward of 1;
losing or regaining a point of health gives -0.1 or +0.1. At health 0 you are dead and the episode is over.

You see 9 cells west to east and 7 north to south, yourself in the middle. Coordinates grow to the east and
to the south. You act on the cell you face; a move turns you first, and steps if the cell is free grass, sand
or path. Stepping into lava kills at once. Trees, water, stone, ores, tables, plants and creatures block.

Body: health, food, drink and energy go from 0 to 9. Food falls by 1 about every 25 steps, drink every 20,
energy every 30 while you are awake. With all three above 0 you regain 1 health about every 25 steps (twice
as fast asleep); with any at 0 you lose 1 about every 15. Water: do on it for +1 drink. A cow: several hits,
+6 food. A ripe plant: +4 food. Asleep you gain energy and need less, but do nothing else: you wake up when
energy is full or when you are hurt.

Collecting (do): wood from a tree, which becomes grass; a sapling from grass 1 time in 10; stone and coal with a
wood_pickaxe, iron with a stone_pickaxe, diamond with an iron_pickaxe: the best one you carry is used, and
nothing wears out. You can carry 9 of each item. Mined cells become path.
{_recipes()}

Creatures: cows do no harm. Zombies come on grass, more in the dark, hit for 2 (7 when you sleep) and then
need 5 steps; they have 5 hit points. Skeletons live on the paths of dark tunnels, shoot arrows for 2, and
have 3 hit points; cows have 3. Your hits do 1, with a wood, stone or iron sword 2, 3 or 5. Placed stones make
walls: creatures don't dig. A sapling ripens after 300 steps in which you are near; cows, zombies and
skeletons next to it, and arrows, destroy it. Spawned creatures need free grass or path, so a closed cell of
stone is a safe bed."""
