"""Agents that let a language model decide.

agent        the agent `llm`; create makes it from options
asking       its requests to the model; decision, reflection and speech are what for
turn         what its model has been shown, and what has not been told to it yet
cadence      several steps per decision; changes says what ends them early
styles       how a model is asked, in JSON or in tags; reply reads what it answers
prompts      the templates
memory       what agents can remember with
tools        what they can use while they think; mcp has those of servers
backends     language models over HTTP, and the pool that hands them out; middleware goes around each

Public for other distributions: `agent`, `kit` (for model backends) and `export` (played turns as prompts
and replies).
"""

from __future__ import annotations
