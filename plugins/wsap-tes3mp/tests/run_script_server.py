"""A process that is a TES3MP server for its connector: the installed script in LuaJIT on the fake, with a real port.

    python run_script_server.py SCRIPTS_FOLDER

It prints the port, lets its time go on ten times as fast as a clock, and exits with 70 where the real server would die.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lua_server import LuaServer


def main() -> None:
    """Run until killed."""
    server = LuaServer(folder=Path(sys.argv[1]), module="custom.wsap.main", before="fake.hard = true")
    server.player()
    server.player(1, "Othmar")
    server.fake.place("Test House", "12-0", "test npc", "actor", 120, 210, 50)
    print(next(line for line in server.log if " listens by " in line).rsplit(" ", 1)[1], flush=True)
    while True:
        server.step()
        time.sleep(0.005)


if __name__ == "__main__":
    main()
