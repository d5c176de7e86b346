"""Pictures of the world for an agent whose model sees."""

from __future__ import annotations

import logging
from collections.abc import Callable

from wsap_core.errors import UsageError
from wsap_core.seams.agent import GetView
from wsap_core.seams.model import Backend, ImagePart
from wsap_core.untrusted import single_line
from wsap_llm.options import LLMOptions
from wsap_llm.pictures import picture_of


class Vision:
    """One agent's view of the world, where pictures were asked for. That the world shows none is told once; to the log
    of warnings where `tell` is None."""

    def __init__(self, backend: Backend, options: LLMOptions, tell: Callable[[str], None] | None = None) -> None:
        self._backend = backend
        self._options = options
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._asked = False
        self.get_view: GetView | None = None
        """Gives what is drawn now; None where nobody lets the agent see."""

    def check(self) -> None:
        """Check, before a session begins, that the model can see the pictures that were asked for. Raises UsageError if
        it can't."""
        if self._options.pictures and self._backend.abilities.images is False:
            raise UsageError(
                f"{self._backend.model} can't see pictures; leave --pictures out, or take a model that can: "
                "`wsap models` says which."
            )

    async def picture(self) -> ImagePart | None:
        """Return the picture of this moment; None where there is none, or none was asked for. Raises UsageError if the
        world shows no picture at first, and strict play was asked for."""
        if not self._options.pictures:
            return None
        picture = picture_of(await self.get_view()) if self.get_view is not None else None
        if picture is None and not self._asked:
            shows = f"{single_line(self._options.game_name)} shows no pictures"
            if self._options.strict:
                raise UsageError(f"{shows}, and strict play was asked for; leave --pictures or --strict out.")
            self._tell(f"{shows}, so the model plays by the text alone.")
        self._asked = True
        return picture
