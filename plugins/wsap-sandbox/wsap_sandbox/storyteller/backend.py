"""A rule-based stand-in for a language model: `storyteller/default` tells any world, bundled ones best."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

from wsap_core.protocol.values import JsonValue
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.model import Abilities, Finish, JsonConstraint, OnText, Reply, Request
from wsap_core.seams.model_errors import BadRequestError
from wsap_sandbox.phrases.grammar import number_of
from wsap_sandbox.storyteller.intentions import Mind, summary
from wsap_sandbox.storyteller.lore import lore_of
from wsap_sandbox.storyteller.master import Master
from wsap_sandbox.storyteller.narrator import Narrator
from wsap_sandbox.templates.loader import read_template
from wsap_sandbox.templates.shape import TemplateShape
from wsap_sandbox.tick.facts import IntentFacts, MemoryFacts, SceneFacts, StoryFacts, facts_of

DEFAULT = "storyteller/default"


class Storyteller:
    """Replies from nothing but the facts and the seed of a request; stateless.

    `model` is its address; `own` is a template whose material it uses.
    """

    def __init__(self, model: str = DEFAULT, own: TemplateShape | None = None) -> None:
        self.model = model
        self.abilities = Abilities(json_schema=True)
        self._own = own

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply. Raises BadRequestError if the request has no facts of a sandbox world."""
        facts = request.options.get("storyteller")
        if facts is None:
            raise BadRequestError(
                f"{self.model} works only for worlds of wsap-sandbox; choose a language model for this."
            )
        schema = request.constraint.schema if isinstance(request.constraint, JsonConstraint) else {}
        text = json.dumps(_within(self.reply(facts, request.sampling.seed or 0), schema), ensure_ascii=False)
        prompt = sum(len(message.text()) for message in request.messages) // 4
        return Reply(text, finish=Finish("stop", None, Usage(1, prompt, len(text) // 4, 0.0)))

    def cost_of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return 0."""
        return 0.0

    async def aclose(self) -> None:
        """Do nothing."""

    def reply(self, data: Mapping[str, JsonValue], seed: int) -> dict[str, JsonValue]:
        """Return the reply to the output of `facts_data`, as JSON-ready data."""
        facts, rng = facts_of(data), random.Random(f"{seed}/{data['phase']}")
        lore = lore_of(facts, self._own)
        match facts:
            case IntentFacts():
                return {"intention": Mind(facts, lore, number_of(facts.tick, facts.me.id), rng).intention()}
            case MemoryFacts():
                return {"summary": summary(facts, lore, number_of(facts.tick, facts.me.id), rng)}
            case SceneFacts():
                return Master(facts, lore, number_of(facts.tick, facts.place.id), rng).reply()
            case StoryFacts():
                return {"story": Narrator(facts, lore, number_of(facts.tick, facts.place.id), rng).told()}


def _within(value: JsonValue, schema: Mapping[str, JsonValue]) -> JsonValue:
    """Return a reply with its texts cut to the schema's maximum lengths."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {key: _within(one, inner.get(key, {})) for key, one in value.items()}
    if isinstance(value, list):
        return [_within(one, schema.get("items", {})) for one in value]
    most = schema.get("maxLength")
    if not isinstance(value, str) or most is None or len(value) <= most:
        return value
    whole = value[:most]
    ends = max(whole.rfind(". "), whole.rfind("! "), whole.rfind("? "))
    return whole[: ends + 1] if ends > most // 3 else f"{whole[: most - 1].rsplit(' ', 1)[0]}…"[:most]


def create(context: Context) -> Storyteller:
    """Return the storyteller; `storyteller/PATH.toml` uses the material of that template.

    Raises ConfigError if the template is invalid.
    """
    name = str(context.config.get("model", "default"))
    # Without the file a story continues with the general material.
    own = read_template(name) if name.endswith(".toml") and Path(name).exists() else None
    return Storyteller(f"storyteller/{name}", own)


async def listing(context: Context) -> Listing:
    """Return the only model, which needs no server."""
    return Listing("storyteller", models=[ModelInfo(DEFAULT, detail="tells sandbox worlds without a model")])
