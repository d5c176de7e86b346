"""What a reply must look like, and reading it: by its shape, never by what prose may mean.

schema, tags        the two forms that are asked for, made from what is legal now, and reading tags
steps               how several steps are asked for in either form

reading             read_reply: the rest of this list in order, for replies in any other form; the one question after it
├── shapes          words before actions by language, calls of model families, and what leaves a call in doubt
├── repair          JSON as language models write it
├── objects         what a JSON value asks for
└── calls           `move(direction=north)` and bare names; calls behind labels and between tags
choices             what may be named now, and near misses of names
candidates          what one place in a reply asks for, with its parameters, and what came of reading it all

Calls that a backend returns beside the text (`tool_calls`) have the form that `objects` reads already.
"""

from __future__ import annotations

from wsap_llm.reply.candidates import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.reading import read_reply, reask, why

__all__ = [
    "NotUnderstood",
    "Reading",
    "ToolCall",
    "Understood",
    "read_reply",
    "reask",
    "why",
]
