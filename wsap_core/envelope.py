"""Messages in an envelope that says which version of the protocol they follow and what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsap_core import protocol as models
from wsap_core.errors import WireError
from wsap_core.protocol.base import Part
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.version import PROTOCOL_VERSION, check_protocol_version

MESSAGES: Mapping[str, type] = {
    name: found
    for name in models.__all__
    if isinstance(found := getattr(models, name), type) and hasattr(found, "__dataclass_fields__")
}
"""Every message of the protocol by its name, which is also what an envelope's `type` says."""


@dataclass(frozen=True)
class Envelope:
    """A message with what a reader must know before reading it."""

    protocol_version: str
    """The version that the sender follows (SemVer); a reader of the same major number understands it."""
    type: str
    """The name of the message; what a world adds to it is told apart by the body's `$type`."""
    body: Any
    """The message. Any: it is one of the protocol's types, or one that a plugin derived from them."""


def message_name(cls: type) -> str:
    """Return the name under which a class travels: its own, or that of the protocol's type it derives from.

    Raises:
        WireError: it is no message of the protocol.
    """
    for base in cls.__mro__:
        if MESSAGES.get(base.__name__) is base:
            return base.__name__
    raise WireError(f"A {cls.__module__}.{cls.__qualname__} is no message of the protocol.")


def encode_envelope(body: Part | models.View) -> str:
    """Return a message in its envelope, as canonical JSON.

    Raises:
        WireError: it is no message of the protocol, or holds what JSON has no word for.
    """
    name = message_name(type(body))
    return f'{{"body":{dumps(body)},"protocol_version":{dumps(PROTOCOL_VERSION)},"type":{dumps(name)}}}'


def decode_envelope(
    message: str | bytes | Mapping[str, Any], codec: Codec | None = None, *, where: str = "message"
) -> Envelope:
    """Return the envelope with its message, validated.

    Args:
        message: JSON, or what it stands for.
        codec: knows the subclasses that may be in it; the protocol's own when None.
        where: what an error calls it.

    Raises:
        ProtocolVersionError: the sender speaks another major version.
        WireError: it is not JSON, not an envelope, of a type that this version does not have, or its
            body is not valid.
    """
    reader = codec or Codec()
    data = reader.loads(dict, message, where=where) if isinstance(message, str | bytes) else message
    if not isinstance(data, Mapping):
        raise WireError(f"The {where} is not an envelope: it is a {type(data).__name__}, not an object.")
    version, name = data.get("protocol_version"), data.get("type")
    if not isinstance(version, str) or not isinstance(name, str) or "body" not in data:
        raise WireError(f"The {where} is not an envelope: it needs protocol_version and type (texts) and body.")
    check_protocol_version(version, where=where)
    cls = MESSAGES.get(name)
    if cls is None:
        raise WireError(f"The {where} is a {json.dumps(name)}, which protocol {PROTOCOL_VERSION} does not have.")
    return Envelope(version, name, reader.decode(cls, data["body"], where=where))
