"""What a person sees of a run in a terminal.

    story     what has happened in a seat so far, from steps played now or recorded
    palette   how the things on a map look
    gridmap   a map of characters as coloured tiles
    picture   an image as half-block pixels
    blocks    every other kind of view block
    panels    vitals, inventory, last actions, achievements
    screen    all of it on one screen, whatever its size
    keys      the keyboard, key by key
    live      a run while it is played
    browser   a recorded run, step by step
    plain     lines for where there is no terminal

Text that a game, an agent or a file wrote goes through `single_line` and into `rich.text.Text`, which
knows no markup; nothing of it is ever interpreted.
"""

from __future__ import annotations
