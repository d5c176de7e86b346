"""What a reply must look like, and reading it: by its shape, never by what prose may mean.

schema, tags        the two forms that are asked for, made from what is legal now
steps               how several steps are asked for in either form
scanner             reading tags while they are still being written

reading             read_reply: the rest of this list in order, for replies in any other form
├── shapes          words before actions by language, and calls of model families
├── repair          JSON as language models write it
├── objects         what a JSON value asks for
├── elements        calls between tags
├── labels          calls behind labels
├── calls           `move(direction=north)` and bare names
└── context         whether what stands around a call leaves it in doubt
choices             what may be named now, and near misses of names
parameters          parameters brought into their declared form
candidates          what one place in a reply asks for, and what came of reading it all
asking              the question that is asked once more

Calls that a backend returns beside the text (`tool_calls`) have the form that `objects` reads already.
"""

from __future__ import annotations

from wsap_llm.reply.asking import reask, why
from wsap_llm.reply.candidates import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.reading import read_reply
from wsap_llm.thinking import Split, split_thinking

__all__ = [
    "NotUnderstood",
    "Reading",
    "Split",
    "ToolCall",
    "Understood",
    "read_reply",
    "reask",
    "split_thinking",
    "why",
]
