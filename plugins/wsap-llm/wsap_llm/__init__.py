"""Agents whose decisions are made by a language model.

agent        the agent `llm`; `create` builds it from options
asking       its model requests for decisions, reflection and speech
turn         the conversation with the model, and observations not yet shown to it
cadence      several steps per decision; `changes` detects what ends them early
styles       prompt and reply formats such as JSON or tags; `reply` parses the replies
prompts      the prompt templates
memory       the memories of agents
tools        the tools of agents; `mcp` adds those of MCP servers
backends     language models over HTTP, and the model pool; `middleware` wraps each backend

Public for other distributions: `agent`, `kit` (for model backends) and `export` (recorded turns as model messages).
"""

from __future__ import annotations
