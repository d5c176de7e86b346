"""The rules of Crafter as text for the start of a session; the recipes are the requirements of its actions."""

from __future__ import annotations

DESCRIPTION = """\
Crafter is a survival game on a map of 64 by 64 cells, with a day of 300 steps and 10,000 steps at most.

Goal: unlock as many of the 22 achievements as you can, and stay alive. Each new one is worth 1, a point of health
lost or regained -0.1 or +0.1. At health 0 you are dead and the episode is over.

The map shows the 9 by 7 cells around you. Coordinates grow to the east and south. You act on the cell you face; a
move turns you first, and steps if the cell is free grass, sand or path. Stepping into lava kills at once.

Health, food, drink and energy go from 0 to 9. Food falls by 1 about every 25 steps, drink every 20, energy every 30
while you are awake. With all above 0 you regain 1 health about every 25 steps (twice as fast asleep); with any at 0
you lose 1 about every 15. Water gives 1 drink, a cow after several hits 6 food, a ripe plant 4 food. Asleep you gain
energy and do nothing else.

A tree gives wood and becomes grass, grass a sapling 1 time in 10; stone and coal take a wood_pickaxe, iron a
stone_pickaxe, diamond an iron_pickaxe. Nothing wears out. You can carry 9 of each. Mined cells become path.
Next to includes diagonals.

Cows do no harm. Zombies come on grass, more in the dark, hit for 2 (7 when you sleep) every 5 steps, and have 5 hit
points. Skeletons live in dark tunnels, shoot arrows for 2, and have 3, as cows. Your hits do 1, with a wood, stone
or iron sword 2, 3 or 5. Creatures don't dig: a closed cell of stone is a safe bed. A sapling ripens after 300 steps
in which you are near; creatures next to it and arrows destroy it."""
