"""The formats of replies, and a lenient parser that goes by form and never interprets prose.

schema, tags        the formats for the legal actions, and the parser for tags
steps               requests for several steps in either format

reading             read_reply, for replies in any format, with the modules below in this order; reask
├── shapes          labels of actions by language, calls of model families, marks of doubt about a call
├── repair          JSON as language models write it
├── objects         the actions in a JSON value
└── calls           `move(direction=north)` and bare names; calls after labels and between tags
choices             the names of legal actions and tools, with near misses
candidates          one action in a reply with its parameters, and the result of parsing

Calls that a backend returns separately from the text (`tool_calls`) have a format that `objects` reads.
"""

from __future__ import annotations

from wsap_llm.reply.candidates import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.reading import read_reply, reask, why

__all__ = ["NotUnderstood", "Reading", "ToolCall", "Understood", "read_reply", "reask", "why"]
