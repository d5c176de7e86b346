"""Worlds in worker processes: watched, and made again from their last saved state when a process dies.

frames.py    what goes through the pipes: numbered frames of canonical JSON
mark.py      eight bytes that say which world a worker is at, readable even when it is dead
bridge.py    a world behind the protocol: one request in, one reply out
host.py      the worker's side: many worlds, one event loop
main.py      the worker's process
link.py      one worker, as the nexus sees it
pool.py      all of them: where worlds are put, and who is late
journal.py   what happened in a world since its last saved state
world.py     a world in a worker, with the face of any other
"""
