"""The models of a world: an address for each phase, and requests as each model can take them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from wsap_core.errors import UsageError
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Chunk, JsonConstraint, Request
from wsap_core.seams.services import WorldModels
from wsap_sandbox.options import STORYTELLER, SandboxOptions


async def opened(models: WorldModels | None, options: SandboxOptions, phase: str) -> Backend:
    """Return the model that is asked in a phase.

    Raises UsageError if a language model is wanted, and there is no service of models; WsapError if there is no such
    model, or it can't be asked.
    """
    address = options.models[phase]
    if address.split("/")[0] == STORYTELLER:
        # A world that somebody wrote is told from what its template holds for that.
        own = options.template if options.template.endswith(".toml") and options.world is None else "default"
        name = address.removeprefix(STORYTELLER).removeprefix("/") or own
        if models is not None:
            return await models.open(f"{STORYTELLER}/{name}")
        from wsap_sandbox.storyteller.backend import create  # deferred for weight

        return create(Context(config={"model": name}))
    if models is None:
        raise UsageError(f"The model {address} can't be asked here; play the world with wsap sandbox run.")
    return Fitted(await models.open(address, options.own))


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
