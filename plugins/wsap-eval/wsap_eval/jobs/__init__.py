"""Plays episodes in other processes: local workers and Ray.

frames.py    messages between the driver and a worker
worker.py    the worker process
local.py     the driver: distributes episodes and replaces dead workers
cluster.py   episodes as Ray tasks

Episodes with language models run concurrently in the driver's process, since they mostly wait and share spending
limits. Workers play the rest.
"""
