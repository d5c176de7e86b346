"""Plays work in other processes, such as the episodes of an evaluation: local workers and Ray.

work.py      what is played: the one protocol of workers, wherever they are
frames.py    messages between the driver and a worker
worker.py    the worker process
local.py     the driver: distributes jobs and replaces dead workers
cluster.py   jobs as Ray tasks
together.py  concurrent coroutines

Episodes with language models run concurrently in the driver's process, since they mostly wait and share spending
limits. Workers play the rest.
"""
