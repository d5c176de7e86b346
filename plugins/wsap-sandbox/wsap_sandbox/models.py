"""The models of a world: an address for each phase, and requests as each model can take them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from wsap_core.errors import UsageError
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Chunk, Finish, JsonConstraint, Request, TextChunk
from wsap_core.seams.services import WorldModels
from wsap_sandbox.options import STORYTELLER, SandboxOptions


async def opened(models: WorldModels | None, options: SandboxOptions, phase: str) -> Backend:
    """Return the model that is asked in a phase.

    Raises:
        UsageError: a language model is wanted, and there is no service of models.
        WsapError: there is no such model, or it can't be asked.
    """
    address = options.models[phase]
    if address == STORYTELLER:
        return storyteller(Context()) if models is None else await models.open(f"{STORYTELLER}/seeded")
    if models is None:
        raise UsageError(f"The model {address} can't be asked here; play the world with wsap sandbox run.")
    return Fitted(await models.open(address, options.own))


def storyteller(context: Context) -> Backend:
    """Return the model that comes with the plugin: the factory of the backend `storyteller`."""
    return _Plain()


class _Plain:
    """Stands in for the storyteller."""

    model = "storyteller/seeded"
    abilities = Abilities(json_schema=True)

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        import json

        facts = request.options["storyteller"]
        reply: object
        if facts["phase"] == "intent":
            reply = {"intention": f"I look around for the {facts['tick']}th time."}
        elif facts["phase"] == "scene":
            exits = [e["id"] for e in facts["place"]["exits"]]
            reply = {
                "characters": {
                    a["person"]["id"]: {
                        "order": n, "event": f"{a['person']['name']} looks around: {a['intention']}",
                        "outcome": ("success", "partial", "failure")[(facts["tick"] + n) % 3], "triggers": [],
                        "unnoticed_by": [],
                        "to": exits[facts["tick"] % len(exits)] if exits and facts["tick"] % 3 == 0 else "stay",
                        "state": "calm", "goal": "", "tried": "I tried to look.", "came_of_it": "I saw something.",
                        "interpretation": "It may matter.",
                    }
                    for n, a in enumerate(facts["actors"], 1)
                },
                "objects": [], "happenings": ["The wind turns."] if not facts["actors"] else [],
                "place": {"moment": f"It is the hour {facts['tick']}.", "description": "", "cause": "none"},
            }  # fmt: skip
        elif facts["phase"] == "story":
            reply = {"story": " ".join(e["text"] for e in facts["events"]) or "Nothing."}
        else:
            reply = {"summary": f"I remember {len(facts['cells'])} more things."}
        yield TextChunk(json.dumps(reply, ensure_ascii=False))
        yield Finish()

    async def aclose(self) -> None:
        pass


class Fitted:
    """A model that is asked in the way that it can take: with a schema it applies, or with none."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def model(self) -> str:
        """The address."""
        return self._backend.model

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        return self._backend.abilities

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply to a request without what the model does not know."""
        can, constraint = self.abilities, request.constraint
        if isinstance(constraint, JsonConstraint):
            if not can.json_schema:
                constraint = None
            elif can.schema_subset:
                from wsap_llm.kit import strict_schema  # deferred for weight

                constraint = replace(constraint, schema=strict_schema(constraint.schema))
        return self._backend.stream(replace(request, constraint=constraint, options={}))

    async def aclose(self) -> None:
        """Do nothing: whoever opened the model closes it."""
