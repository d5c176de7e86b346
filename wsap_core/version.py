"""Versions: of the protocol, and which of them this kernel understands."""

from __future__ import annotations

import re

from wsap_core.errors import ProtocolVersionError

PROTOCOL_VERSION = "1.0.0"
"""The version of the Wild Spaces Agent Protocol that this kernel speaks (SemVer)."""

_SEMVER = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")


def check_protocol_version(version: str, *, where: str = "message") -> None:
    """Accept a version with our major number, whatever its minor; refuse a newer major.

    An older major is refused too: there is none yet that could be read.

    Raises:
        ProtocolVersionError: the version is malformed, or of another major.
    """
    match = _SEMVER.fullmatch(version)
    ours = PROTOCOL_VERSION.split(".")[0]
    if match is None:
        raise ProtocolVersionError(f"The {where} states protocol version {version!r}, which is not of the form 1.2.3.")
    if match[1] != ours:
        raise ProtocolVersionError(
            f"The {where} speaks protocol {version}, and this kernel speaks {PROTOCOL_VERSION}; "
            "update the older of the two."
        )
