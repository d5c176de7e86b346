"""The options of `wsap play` that are about language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wsap_core.cli.params import WholeNumber
from wsap_core.errors import UsageError

if TYPE_CHECKING:
    from wsap_core.decisions import Usage
    from wsap_core.host import PluginHost
    from wsap_nexus.backends.registry import Models

F = TypeVar("F", bound=Callable[..., Any])

AGENT = "llm"
"""The agent that plays with a model."""


def model_options(command: F) -> F:
    """Add `--model`, how it is asked, and what may be spent on it."""
    for option in reversed(
        (
            click.option("--model", metavar="ADDRESS", help="A language model plays, such as ollama/qwen3:8b."),
            click.option(
                "--style", type=click.Choice(["json", "tags"]), help="How the model is asked; json if not given."
            ),
            click.option("--persona", metavar="TEXT", help="Who the model is to be; @FILE reads it from a file."),
            click.option("--memory", metavar="KIND", help="What the model remembers with; none if not given."),
            click.option(
                "--tools", metavar="NAMES", help="What the model may use while it thinks, with commas between."
            ),
            click.option("--strict", is_flag=True, help="Refuse a model that can't be bound to legal actions."),
            click.option(
                "--max-calls", type=WholeNumber(1, 10**9), help="Pause before the run asks models more often."
            ),
            click.option("--max-tokens", type=WholeNumber(1, 10**12), help="Pause before the run takes more tokens."),
            click.option("--max-cost", type=float, help="Pause before the run costs more US dollars."),
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What was typed about models."""

    model: str | None
    style: str | None
    persona: str | None
    memory: str | None
    tools: str | None
    strict: bool
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> ModelRequest:
        """Return the request, and take its options out of what was typed."""
        return cls(**{name: given.pop(name) for name in cls.__dataclass_fields__})

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            UsageError: a limit in money that is not above zero.
        """
        if self.max_cost is not None and not 0 < self.max_cost < 1e9:
            raise UsageError(f"--max-cost is an amount of US dollars above 0, not {self.max_cost:g}.")

    def agent_options(self, others: Mapping[str, Any]) -> dict[str, Any]:
        """Return the agents' options with these in them.

        Raises:
            UsageError: one is given twice, in two ways; or how a model is asked, without a model.
        """
        own: dict[str, Any] = {
            "model": self.model,
            "style": self.style,
            "persona": self.persona,
            "memory": self.memory,
            "tools": self.tools,
            "strict": self.strict or None,
        }
        given = {name: value for name, value in own.items() if value is not None}
        twice = sorted(set(given) & set(others))
        if twice:
            raise UsageError(f"The option {twice[0]} is given twice: by --{twice[0]} and by --agent-option.")
        if given and self.model is None and "model" not in others:
            raise UsageError(f"--{next(iter(given))} is about a language model; say which, with --model ADDRESS.")
        return {**others, **given}

    def agent(self, agent: str | None) -> str | None:
        """Return who plays: the agent that asks models, if a model is given and no agent."""
        return AGENT if agent is None and self.model is not None else agent

    def models(self, host: PluginHost, spent: Usage) -> Models | None:
        """Return models under the limits that were given, or None if there are none.

        Args:
            host: where backends are registered.
            spent: what the run took before.
        """
        if self.max_calls is None and self.max_tokens is None and self.max_cost is None:
            return None
        from wsap_core.llm.wrappers import Budget
        from wsap_nexus.backends.registry import Models

        budget = Budget("run", calls=self.max_calls, tokens=self.max_tokens, cost=self.max_cost, spent=spent)
        return Models(host, budgets=[budget])
