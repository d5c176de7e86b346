"""What can be asked for now: the legal actions, the tools, and what is declared but not legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import ActionDef, Tool
from wsap_llm.reply.words import Names, names_of


@dataclass(frozen=True)
class LegalChoices:
    """Everything that a reply may name."""

    actions: dict[str, ActionDef]
    """Legal now, by name."""
    tools: dict[str, ActionDef]
    """Tools by name, in the form of actions."""
    names: Names
    """Every name, those not legal now included."""
    illegal: frozenset[str] = field(default_factory=frozenset)
    """Declared, but not legal now."""

    @classmethod
    def of(cls, actions: Sequence[ActionDef], tools: Sequence[Tool], declared: Sequence[ActionDef]) -> LegalChoices:
        """Return the offer; an action keeps its name where a tool has the same one."""
        by_name = {action.name: action for action in actions}
        tool_definitions = {
            tool.name: ActionDef(tool.name, tool.description, tool.parameters)
            for tool in tools
            if tool.name not in by_name
        }
        others = tuple(a.name for a in declared if a.name not in by_name and a.name not in tool_definitions)
        return cls(by_name, tool_definitions, names_of((*by_name, *tool_definitions, *others)), frozenset(others))

    def definition(self, name: str) -> ActionDef | None:
        """Return the legal action or tool of that name."""
        return self.actions.get(name) or self.tools.get(name)
