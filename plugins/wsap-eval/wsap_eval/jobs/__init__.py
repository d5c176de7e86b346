"""Where episodes are played besides this process: worker processes of this machine, and Ray.

frames.py    the messages on the pipes between the driver and a worker
worker.py    the process of a worker: plays one episode after the other
local.py     the driver's side: hands out episodes, replaces workers that died
on_ray.py    episodes as tasks of a Ray cluster

Whoever asks a language model plays in the driver's process, many episodes at once: they wait most of the time, and so
limits on spending hold over all of them. Workers play the rest.
"""
