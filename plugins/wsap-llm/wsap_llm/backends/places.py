"""Where a server is, by its address."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_here(place: str) -> bool:
    """Return whether an address is on this machine."""
    host = _host(place)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def is_local(place: str) -> bool:
    """Return whether an address is on this machine or in a private network."""
    host = _host(place)
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost"))


def _host(place: str) -> str:
    """Return the host of an address, which may lack the protocol; empty if it can't be read."""
    try:
        return urlsplit(place if "://" in place else f"//{place}").hostname or ""
    except ValueError:
        return ""
