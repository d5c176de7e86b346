"""Worlds in worker processes, rebuilt from their last saved state when a process dies.

frames.py            the messages on the pipes: numbered frames of canonical JSON
blame.py             the world that a worker is calling, readable after its death
processes.py         what a process has started, and the memory that it uses
keeper.py            the process that starts a worker, limits its memory, and ends what its games have started
host.py              the worker's side: many worlds on one event loop
main.py              the worker's process
carriers/            where a worker's process runs: on this machine, or on a node of a cluster
link.py              the nexus' side of a worker
pool.py              all workers: placement, deadlines, blame
rebuild_journal.py   the calls of a world since its last saved state
rebuild.py           the line to a world, which rebuilds it
asked.py             what a world that lives asks the nexus: replies of models, and to record notes
living_line.py       the line to a world that lives, which keeps its order and answers it
"""
