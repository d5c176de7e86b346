"""The nexus: where agents are when they are in no world, and what moves them between worlds.

`book` keeps who is where and with what, each change in one transaction with its event; `worlds`
is how worlds are reached wherever they run; `transit` moves agents; `place` is the nexus as a
world that an agent perceives and acts in; `table` plays agents in one world; `hub` runs it all.
"""
