"""The served nexus, as a dependency of HTTP routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from wsap_nexus.hub.nexus import Nexus


async def the_nexus(request: Request) -> Nexus:
    """Return the application's nexus."""
    nexus: Nexus = request.app.state.nexus
    return nexus


Hub = Annotated[Nexus, Depends(the_nexus)]
