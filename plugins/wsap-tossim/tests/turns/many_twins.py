"""Hold as many pairs of games against each other as one likes, and say what was found: see `test_twins`.

python plugins/wsap-tossim/tests/turns/many_twins.py --pairs 2000 --first 0
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

import drawn
from twins import KINDS, compared, play, watch


def main() -> int:
    """Compare, print what differs and the count of what does not; return 1 if anything was found."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pairs", type=int, default=2000, help="how many")
    asked.add_argument("--first", type=int, default=0, help="the seed of the first; each has the next one")
    asked.add_argument("--most", type=int, default=12, help="players in a game, at most")
    asked.add_argument("--fast", action="store_true", help="by the engine alone, without a word of text")
    given = asked.parse_args()
    by = watch if given.fast else play
    pairs: Counter[str] = Counter()
    same: Counter[str] = Counter()
    found = 0
    for salt in range(given.first, given.first + given.pairs):
        kind = list(KINDS)[salt % len(KINDS)]
        script = drawn.script(salt, most=given.most)
        first = by(script)
        change = drawn.change(kind, script, first)
        if change is None:
            continue
        pairs[kind] += 1
        try:
            same[kind] += compared(script, change, first, by)
        except AssertionError as error:
            found += 1
            print(f"--first {salt} --pairs 1: {change}\n{' '.join(script.roles)}\n{error}\n", flush=True)
    for kind in KINDS:
        print(f"{kind:>9}: {pairs[kind]} pairs, {same[kind]} times the same after they had parted")
    print(f"{found} of {sum(pairs.values())} pairs tell something hidden")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
