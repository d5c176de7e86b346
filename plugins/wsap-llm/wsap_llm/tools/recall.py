"""The recall tool: searches the agent's memory."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.errors import ConfigError
from wsap_core.protocol import ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.tool import ToolContext
from wsap_core.untrusted import single_line
from wsap_llm.options.declared import option_defs, read_table
from wsap_llm.options.table import Range

TOKENS = 200
"""Approximate maximum number of tokens of a result."""
OPTIONS = {"tokens": Range(TOKENS, 20, 4000)}
DECLARED = option_defs(OPTIONS)


class Recall:
    """Searches the agent's memory; results have at most about `tokens` tokens."""

    inward = True
    """It only affects the agent."""
    definition = Tool(
        "recall",
        "Searches your memory of everything you lived through and noted; says where and when it was.",
        [
            ParamDef(
                "query", schema={"type": "string", "minLength": 1, "maxLength": 300}, description="What to look for"
            )
        ],
    )

    def __init__(self, memory: AgentMemory, tokens: int = TOKENS) -> None:
        self._memory = memory
        self._tokens = tokens

    def run(self, parameters: Mapping[str, JsonValue]) -> str:
        """Return the matching memories, one a line, best first."""
        found = self._memory.recall(str(parameters.get("query", "")), budget=self._tokens)
        return "\n".join(f"- {single_line(memory.text)}" for memory in found) or "Nothing comes to mind."


def create(context: ToolContext) -> Recall:
    """Return a search of the agent's memory; the option `tokens` (200) limits its results. Raises ConfigError if the
    agent has no memory or the option is invalid."""
    given = read_table("recall tool", context.config, OPTIONS)
    if context.memory is None:
        raise ConfigError("The tool recall requires a memory; give the agent one, such as fulltext or fifo.")
    return Recall(context.memory, **given)
