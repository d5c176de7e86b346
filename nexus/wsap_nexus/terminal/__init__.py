"""The terminal's views of runs.

    story     the state of a seat so far, from live or recorded steps
    gridmap   a map of characters as coloured tiles
    blocks    pictures and all other kinds of view blocks
    panels    vitals, inventory, last actions, achievements
    screen    the layout of the screen, for every size
    keys      keyboard input
    keymap    the keys and typed actions of people who play
    live      a run while it is played
    recorded  a recorded run, at any step
    browser   a recorded run, step by step
    look      the game's own view of a recorded run
    spending  model usage in words
    plain     lines, without a terminal

Text from a game, an agent or a file goes through `single_line` and into `rich.text.Text`, which does not interpret
markup.
"""

from __future__ import annotations
