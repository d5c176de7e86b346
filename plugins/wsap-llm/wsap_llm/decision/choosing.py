"""The style `choose`: a model scores the legal actions instead of writing, and one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from typing_extensions import override

from wsap_core.protocol import Action, ActionDef, ParamDef
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.model import Abilities, ChooseConstraint
from wsap_core.seams.tool import AgentTool
from wsap_core.untrusted import single_line
from wsap_llm.decision.asking import Decision, DecisionTurn
from wsap_llm.decision.styles import Style
from wsap_llm.prompts import Prompts
from wsap_llm.tools.lookup import split

MOST_OPTIONS = 64
"""Maximum number of scored options; if more are legal, the reply is written."""


def options_of(legal: Sequence[ActionDef], phrases: Mapping[str, str]) -> dict[str, Action]:
    """Return the legal actions by their text: phrase or name, with the values of the parameters.

    Lookups and messages are left out because they end no turn. Empty if a parameter is free text or there are more than
    `MOST_OPTIONS` options.
    """
    found: dict[str, Action] = {}
    for action in _turns(legal):
        needed = [p for p in action.parameters if not p.optional]
        values = [_values(parameter) for parameter in needed]
        if not all(values):
            return {}
        text = single_line(phrases.get(action.name) or action.name.replace("_", " "))
        for given in islice(product(*values), MOST_OPTIONS + 1):
            chosen = Action(action.name, {p.name: value for p, value in zip(needed, given, strict=True)})
            option = " ".join([text, *(single_line(value) for value in given)])
            found[option if option not in found else f"{option} ({action.name})"] = chosen
        if len(found) > MOST_OPTIONS:
            return {}
    return found


def _turns(legal: Sequence[ActionDef]) -> Sequence[ActionDef]:
    return [action for action in split(legal)[0] if action.category != "message"]


def _values(parameter: ParamDef) -> Sequence[JsonValue]:
    if (choices := parameter.choices()) is not None:
        return choices
    bounds = parameter.integer_range()
    return range(bounds[0], min(bounds[1], bounds[0] + MOST_OPTIONS) + 1) if bounds else ()


class ChooseStyle(Style):
    """The model scores the options of a turn, at least one, and one is drawn by seed at the sampling temperature.
    `written` is the style for turns whose options can't be listed."""

    name = "choose"
    looks_up = False

    def __init__(self, written: Style) -> None:
        self.written = written

    @override
    def how_to_answer(self, prompts: Prompts, space: Sequence[ActionDef], tools: Sequence[AgentTool]) -> str:
        free = any(not options_of([action], {}) for action in _turns(space))
        return self.written.how_to_answer(prompts, space, tools) if free else ""

    @override
    def question(self, prompts: Prompts) -> str:
        return prompts.render("choose_question")

    @override
    def constrains(self, abilities: Abilities) -> bool:
        return abilities.choose

    @override
    async def decide(self, turn: DecisionTurn) -> Decision:
        reply = await turn.ask_constrained("decide", [turn.opening], ChooseConstraint(tuple(turn.options)))
        action = turn.options.get(reply.text)
        if action is None:
            turn.misread(reply, "the reply is not one of the options")
            return Decision(None)
        return Decision(action, said=reply.message, chosen=True)
