"""Plays work, in this process and in others, and keeps what is finished.

runner.py    plays what is due, here and there, and stops in good order
work.py      what is played elsewhere: the one protocol of workers, wherever they are
episodes.py  the episodes of a suite as such work
frames.py    messages between the driver and a worker
worker.py    the worker process
local.py     the driver: distributes jobs and replaces dead workers
cluster.py   jobs as Ray tasks
together.py  concurrent coroutines
journal.py   files of what is finished

Episodes with language models run concurrently in the driver's process, since they mostly wait and share spending
limits. Workers play the rest.
"""
