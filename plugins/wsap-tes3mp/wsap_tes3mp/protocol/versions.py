"""Versions of the Perception/Command protocol (seed 001, section 2), and which of them are understood."""

from __future__ import annotations

import re

from wsap_tes3mp.protocol.errors import SchemaMismatchError

SEED_VERSION = "1.0.0"
"""The version of the seed: three endpoints."""
PROTOCOL_VERSION = "1.1.0"
"""The version that this bridge and client speak: the seed's, with endpoints and optional fields added."""

_SEMVER = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
_MAJOR = int(PROTOCOL_VERSION.split(".")[0])


def check_version(version: str, *, where: str = "payload") -> None:
    """Accept any version whose major number is not above ours.

    Raises:
        SchemaMismatchError: it is no SemVer version, or of a newer major.
    """
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise SchemaMismatchError(f"The {where} states the version {version[:40]!r}, which is not of the form 1.2.3.")
    if int(match[1]) > _MAJOR:
        raise SchemaMismatchError(
            f"The {where} speaks protocol {version}, and here it is {PROTOCOL_VERSION}; update the older of the two."
        )
