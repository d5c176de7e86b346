"""The options of `wsap play` for language models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wsap_core.cli.params import FiniteRange, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.loading import MODEL_AGENT
from wsap_core.untrusted import single_line
from wsap_llm.options.table import STYLES

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Price
    from wsap_llm.backends.pool import ModelPool
    from wsap_llm.middleware.budgets import Budgets
    from wsap_nexus.runs.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def model_options(command: F) -> F:
    """Add `--model`, the options of its agent and its backend, limits and prices."""
    for option in reversed(
        (
            click.option("--model", metavar="ADDRESS", help="The language model that plays, such as ollama/qwen3:8b."),
            click.option("--style", type=click.Choice(STYLES), help="How the model answers; auto if not given."),
            click.option("--persona", metavar="TEXT", help="The character to play; @FILE reads it from a file."),
            click.option("--memory", metavar="KIND", help="The kind of memory, such as fulltext; none if not given."),
            click.option("--tools", metavar="NAMES", help="Tools that the model may use, separated by commas."),
            click.option("--pictures", is_flag=True, help="Send the model the game's image with each observation."),
            click.option("--strict", is_flag=True, help="Refuse a model that can't be constrained to legal actions."),
            limit_option(
                "Pause before calls, tokens or cost (US dollars) exceed N: cost=2, decision.calls=5, day.tokens=99000; "
                "without a scope, for the whole run. May be repeated."
            ),
            click.option(
                "--model-option",
                "backend_options",
                multiple=True,
                metavar="KEY=VALUE",
                help="An option of the model's backend, such as num_ctx=16384; may be repeated.",
            ),
            click.option(
                "--price-in", type=FiniteRange(0), metavar="FLOAT", help="US dollars per million prompt tokens."
            ),
            click.option(
                "--price-out", type=FiniteRange(0), metavar="FLOAT", help="US dollars per million reply tokens."
            ),
        )
    ):
        command = option(command)
    return command


def limit_option(help_text: str) -> Callable[[F], F]:
    """Return the option `--limit`, whose values `Budgets.parse` reads."""
    return click.option("--limit", "limits", multiple=True, metavar="[SCOPE.]KIND=N", help=help_text)


def refuse_key(options: Mapping[str, Any], shown: str = "--model-option api_key") -> None:
    """Raise UsageError if the options contain an API key; it suggests `shown`=env:NAME, which is fine."""
    from wsap_llm.secrets import is_reference  # deferred for weight

    key = options.get("model.api_key")
    if key is not None and not (isinstance(key, str) and is_reference(key)):
        raise UsageError(
            "A run's options are recorded, so they must not contain a key; set it in the environment, "
            f"and name the variable if it is not the usual one: {shown}=env:NAME."
        )


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """The options for models of one command line."""

    model: str | None
    style: str | None
    persona: str | None
    memory: str | None
    tools: str | None
    pictures: bool
    strict: bool
    limits: tuple[str, ...] = ()
    backend_options: tuple[str, ...] = ()
    price_in: float | None = None
    price_out: float | None = None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> ModelRequest:
        """Return the request, and remove its options from `given`."""
        return cls(**{name: given.pop(name) for name in cls.__dataclass_fields__})

    def check(self) -> None:
        """Validate limits and prices; UsageError if one is invalid."""
        self.budgets()
        self.prices(())

    def agent_options(self, others: Mapping[str, Any], *, named: bool = False) -> dict[str, Any]:
        """Return the agents' options: these and the `others`; `named`: whether a seat has a model of its own.

        Raises:
            UsageError: an option is given twice, needs a model, or contains an API key.
        """
        own: dict[str, Any] = {
            "model": self.model,
            "style": self.style,
            "persona": self.persona,
            "memory": self.memory,
            "tools": self.tools,
            "pictures": self.pictures or None,
            "strict": self.strict or None,
        }
        given = {name: value for name, value in own.items() if value is not None}
        given |= {f"model.{k}": v for k, v in typed_pairs("--model-option", self.backend_options).items()}
        refuse_key(given)
        refuse_key(others)
        twice = sorted(set(given) & set(others))
        if twice:
            raise UsageError(f"The option {twice[0]} is given twice: by --{twice[0]} and by --agent-option.")
        if given and self.model is None and "model" not in others and not named:
            option = next(iter(given))
            shown = "model-option" if option.startswith("model.") else option
            raise UsageError(f"--{shown} has no effect without a language model; name one with --model ADDRESS.")
        return {**others, **given}

    def agent(self, agent: str | None) -> str | None:
        """Return the agent that plays: the one for models if a model and no agent is given."""
        return MODEL_AGENT if agent is None and self.model is not None else agent

    def models(
        self,
        host: PluginHost,
        store: Store | None,
        asked: Iterable[str] = (),
        *,
        gone_on_with: str | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> ModelPool:
        """Return models with the given limits and prices.

        Args:
            store: where the run is recorded; None if it is not.
            asked: the addresses of the models that the run uses.
            gone_on_with: the id of the run, if it is resumed.
            tell: as for `limited_models`.

        Raises:
            UsageError: a limit per day is given, and the run is not recorded.
        """
        from wsap_nexus.models.spending import limited_models

        repository = None if store is None else store.repository
        return limited_models(
            host, self.budgets(), repository, run_id=gone_on_with, prices=self.prices(asked), tell=tell
        )

    def budgets(self) -> Budgets:
        """Return the given limits; UsageError if one is malformed or given twice."""
        from wsap_llm.middleware.budgets import Budgets

        return Budgets.parse(self.limits)

    def prices(self, asked: Iterable[str]) -> dict[str, Price]:
        """Return address -> price for the models that a run uses; empty if no price is given."""
        from wsap_llm.middleware.budgets import prices_for

        return prices_for(asked, self.price_in, self.price_out)


VARIABLE = "WSAP_MODEL"
"""The environment variable with the address of the default model."""


def default_model() -> str | None:
    """Return the address of the default model; None if none is set."""
    return os.environ.get(VARIABLE, "").strip() or None


def with_default(request: ModelRequest, agents: Iterable[str | None], *, named: bool) -> ModelRequest:
    """Return the request with the default model, and print it, if the agent `llm` plays and no model is named.

    `named`: whether a model is named in another way.
    """
    if request.model is not None or named or MODEL_AGENT not in agents:
        return request
    model = default_model()
    if model is None:
        return request
    click.echo(f"Model: {single_line(model)}, from {VARIABLE}; use --model ADDRESS for another.", err=True)
    return replace(request, model=model)
