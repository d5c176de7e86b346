"""The models of a world: an address for each phase, and requests as each model can take them."""

from __future__ import annotations

from dataclasses import replace

from wsap_core.errors import UsageError
from wsap_core.seams.context import Context
from wsap_core.seams.model import Backend, JsonConstraint, Reply, Request, collect
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
    return await models.open(address, options.own)


async def ask(backend: Backend, request: Request) -> Reply:
    """Return the reply to a request, which a language model is given as it can take it: with a schema or without."""
    can, constraint = backend.abilities, request.constraint
    if not backend.model.startswith(f"{STORYTELLER}/"):
        if isinstance(constraint, JsonConstraint) and can.schema_subset:
            from wsap_llm.kit import strict_schema  # deferred for weight

            constraint = replace(constraint, schema=strict_schema(constraint.schema))
        request = replace(request, constraint=constraint if can.json_schema else None, options={})
    return await collect(backend, request)
