"""Where the process of a worker runs, and how bytes reach it.

pipe.py      a process of this machine
cluster.py   a process on a node of a Ray cluster
"""
