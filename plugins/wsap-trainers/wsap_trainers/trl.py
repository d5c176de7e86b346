"""Games as environments of TRL's `GRPOTrainer`, which asks a model for calls of an environment's methods.

from wsap_trainers.trl import factory

trainer = GRPOTrainer(model=..., args=..., train_dataset=..., environment_factory=factory("crafter", max_steps=100))

TRL is not imported: what it asks of an environment is a class with methods.
"""

from __future__ import annotations

import inspect
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from wsap_core.authoring.rules import OVER
from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import Action, ActionDef, ParamDef
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.untrusted import single_line
from wsap_nexus.doors.driven import Driven
from wsap_trainers.names import python_name

# Any, in this module: values of parameters.

_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


class WsapEnvironment:
    """An episode of a game of one seat; `factory` adds a method for each action.

    What a method returns is what a language model reads: the result, and what is seen now. An action that is refused
    says why, and costs a step only of `max_steps`.
    """

    _game: str
    _options: Mapping[str, Any]
    _max_steps: int | None
    _seeds: random.Random

    def __init__(self) -> None:
        self._driven = Driven(self._game, self._options)
        self._reward = 0.0
        self._taken = 0
        self._failed: WsapError | None = None

    def reset(self, seed: int | None = None, **columns: object) -> str:
        """Start an episode, and return the rules and what is seen, for the end of the prompt.

        Args:
            seed: the seed; by default the next of a sequence that all environments of a factory share.
            columns: the other columns of the example, which are ignored.
        """
        self._reward, self._taken, self._failed = 0.0, 0, None
        chosen = self._seeds.randrange(SEED_LIMIT + 1) if seed is None else int(seed)
        if not 0 <= chosen <= SEED_LIMIT:
            raise UsageError(f"The seed {chosen} is not from 0 to {SEED_LIMIT}.")
        seen = self._driven.reset(chosen)
        return f"\n\n{self._driven.description}\n\n{seen.to_text()}"

    def get_reward(self) -> float | None:
        """Return the sum of the rewards of the episode; None if the game failed, so that TRL leaves it out."""
        return self._reward if self._failed is None else None

    def _act(self, action: Action) -> str:
        if self._failed is not None:
            raise self._failed
        if self._is_over():
            return OVER
        if self._max_steps is not None and self._taken >= self._max_steps:
            return f"No step is left: the game ends after {self._max_steps}."
        self._taken += 1
        try:
            result = self._driven.step(action).result
        except WsapError as error:
            self._failed = error  # TRL tells the model of errors, and would pay for what came before
            raise
        self._reward += float(result.reward)
        return "\n\n".join((result.message, OVER if self._is_over() else result.observation.to_text()))

    def _is_over(self) -> bool:
        return self._driven.done


def factory(
    game: str, *, options: Mapping[str, Any] | None = None, max_steps: int | None = None, seed: int = 0
) -> Callable[[], WsapEnvironment]:
    """Return what TRL's `environment_factory` takes: it creates environments of a game.

    Args:
        game: a registered game, or `./file.py:Name`.
        options: options of the game.
        max_steps: actions after which an episode ends; None for no limit.
        seed: the start of the sequence of seeds of examples without a column `seed`.

    Raises:
        UsageError: the game needs several seats, or two of its actions would be one method.
        WsapError: the game can't be created.
    """
    driven = Driven(game, options)
    methods: dict[str, Any] = {}
    for definition in driven.action_space.listed().actions:
        name = python_name(definition.name, taken=("reset", "get_reward"))
        if name in methods:
            raise UsageError(f"Two actions of {single_line(game)[:60]!r} would be the method {name!r}.")
        methods[name] = _method(name, definition)
    own: dict[str, Any] = {
        "_game": game, "_options": dict(options or {}), "_max_steps": max_steps, "_seeds": random.Random(seed),
        "__doc__": f"An episode of {driven.spec.display_title}.",
    }  # fmt: skip
    driven.close()
    title = "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", driven.spec.name))
    return type(f"Wsap{title}", (WsapEnvironment,), {**methods, **own})


def _method(name: str, definition: ActionDef) -> Callable[..., str]:
    """Return a method with the signature and the docstring from which TRL tells the model what it can call."""
    known = {python_name(parameter.name, taken=("self",)): parameter for parameter in definition.parameters}
    if len(known) < len(definition.parameters):
        raise UsageError(f"Two parameters of the action {definition.name!r} would have the same name.")

    def act(self: WsapEnvironment, **given: Any) -> str:
        parameters = {known[key].name: value for key, value in given.items() if key in known and value is not None}
        return self._act(Action(definition.name, parameters))

    described = [f"    {key}: {_described(parameter)}" for key, parameter in known.items()]
    head = single_line(definition.description) or f"Do {single_line(definition.name)}"
    args = ["", "Args:", *described] if described else []
    act.__name__ = act.__qualname__ = name
    act.__doc__ = "\n".join([head, *args, "", "Returns:", "    What happened, and what is seen now."])
    kinds: dict[str, Any] = {key: _kind(parameter) for key, parameter in known.items()}
    kinds = {key: kinds[key] | None if known[key].optional else kinds[key] for key in kinds}
    # Those without a default come first, as Python wants it.
    ordered = sorted(known, key=lambda key: known[key].optional)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kinds[key],
            default=None if known[key].optional else inspect.Parameter.empty,
        )
        for key in ordered
    ]
    act.__signature__ = inspect.Signature([own, *others], return_annotation=str)  # type: ignore[attr-defined]
    act.__annotations__ = {**kinds, "return": str}
    return act


def _kind(parameter: ParamDef) -> Any:
    return _TYPES.get(str(parameter.json_schema().get("type")), str)


def _described(parameter: ParamDef) -> str:
    """Return what a parameter means, with its choices as transformers reads them."""
    text = single_line(parameter.description or parameter.spec or parameter.name)
    schema = parameter.json_schema()
    if "enum" in schema:
        return f"{single_line(parameter.description or parameter.name)} (choices: {json.dumps(list(schema['enum']))})"
    return text
