"""What a world that lives asks the nexus from its worker: replies of models, and to record notes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from wsap_core.errors import WireError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.seams.model import Abilities, Backend, OnText, Reply, Request
from wsap_core.seams.services import Services
from wsap_nexus.worlds.workers.frames import BEAT, frame, read_error

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# Any, in this module: JSON.


class Asking:
    """Asks the nexus on behalf of a world, in its worker."""

    def __init__(self, send: Callable[[bytes], None], world: int) -> None:
        self._send, self._world = send, world
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Future[Mapping[str, Any]]] = {}

    @property
    def services(self) -> Services:
        """The services of the world's game."""
        return Services(models=_Models(self), log=_Log(self))

    def tell(self, what: str, **values: Any) -> None:
        """Send a message that has no answer."""
        self._send(frame(BEAT, dumps({"ask": what, "world": self._world, **values}).encode()))

    async def ask(self, what: str, **values: Any) -> Mapping[str, Any]:
        """Return the answer to a question, of which the nexus is told then; WsapError if the nexus refuses it."""
        number = next(self._numbers)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        self.tell(what, id=number, **values)
        try:
            said = await answer
        except asyncio.CancelledError:
            self.tell("no more", id=number)
            raise
        finally:
            self._open.pop(number, None)
        self.tell("heard", id=number)
        if "failed" in said:
            raise read_error(said["failed"])
        return said

    def told(self, number: int, said: Mapping[str, Any]) -> None:
        """Take the answer to a question."""
        answer = self._open.get(number)
        if answer is not None and not answer.done():
            answer.set_result(said)


class _Models:
    """The service `models` of a world in a worker."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Backend:
        """Return the model of an address; see `wsap_core.seams.services.WorldModels`."""
        said = await self._asking.ask("open", name=name, options=None if options is None else dict(options))
        return _Model(str(said["model"]), Abilities(**said["abilities"]), int(said["backend"]), self._asking)


class _Model:
    """A model that the nexus calls."""

    def __init__(self, model: str, abilities: Abilities, backend: int, asking: Asking) -> None:
        self.model, self.abilities = model, abilities
        self._backend, self._asking = backend, asking

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply; nothing is shown of it before."""
        said = await self._asking.ask("call", backend=self._backend, request=write_request(request))
        reply: Reply = _decoded(Reply, said["reply"], "reply of a model")
        return reply

    async def aclose(self) -> None:
        """Do nothing: other parts of the run may use the same model."""


class _Log:
    """The service `log` of a world in a worker."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def note(self, kind: str, body: Mapping[str, JsonValue]) -> None:
        """Record a note; see `wsap_core.seams.services.WorldLog`."""
        self._asking.tell("note", kind=kind, body=body)


def write_request(request: Request) -> str:
    """Return a request to a model as JSON, with the keys of mappings in their order, which models see."""
    try:
        return json.dumps(_plain(request), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WireError(f"A request to a model can't be sent as JSON: {error}.") from None


def read_request(text: str) -> Request:
    """Return the request of `write_request`; WireError if it is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"The request to a model is not valid JSON: {error}.") from None
    request: Request = _decoded(Request, data, "request to a model")
    return replace(request, messages=tuple(request.messages), stop=tuple(request.stop))


def _decoded(kind: type[Any], data: Any, what: str) -> Any:
    from pydantic import ValidationError  # deferred for weight

    try:
        return _adapter(kind).validate_python(data)  # type: ignore[arg-type]  # classes hash
    except (ValidationError, RecursionError) as error:
        raise WireError(f"The {what} is damaged: {str(error).splitlines()[0]}.") from None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
