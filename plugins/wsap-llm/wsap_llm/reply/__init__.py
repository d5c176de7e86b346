"""Reading what a model replied: tolerant of form, strict about meaning.

outcome      Understood, NotUnderstood, ToolCall
reading      read_reply
asking       reask
thinking     split_thinking
loose_json   JSON as language models write it
"""

from __future__ import annotations

from wsap_llm.reply.asking import reask
from wsap_llm.reply.outcome import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.reading import read_reply
from wsap_llm.thinking import Split, split_thinking

__all__ = ["NotUnderstood", "Reading", "Split", "ToolCall", "Understood", "read_reply", "reask", "split_thinking"]
