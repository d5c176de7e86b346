"""The address and the socket that a server listens on."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from dataclasses import dataclass

from wsap_core.errors import ConfigError, UsageError

PORT = 9998
"""The default port of a nexus."""


class PortInUseError(UsageError):
    """The port is in use."""

    code = "PORT_IN_USE"
    http_status = 409


@dataclass(frozen=True)
class Address:
    """A host and port to listen on."""

    host: str = "127.0.0.1"
    port: int = PORT

    def check(self) -> None:
        """Raise ConfigError if the port is not from 0 to 65535."""
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"A port must be from 0 to 65535, not {self.port}.")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a host name or IP address is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_unexposed(host: str, what: str, *, exposed: bool) -> None:
    """Raise UsageError if other machines could reach `what` at a host and that is not confirmed by `exposed`."""
    if not exposed and not is_loopback(host):
        raise UsageError(
            f"--host {host} lets other machines reach the {what}; confirm this with --expose, "
            "or omit --host to listen only on this machine."
        )


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{0,5})?", re.ASCII)


def host_name(header: str) -> str | None:
    """Return the host in a Host header, in lower case and without brackets; None if the header is invalid."""
    found = _HOST.fullmatch(header.strip().lower())
    return None if found is None else found[1] or found[2]


ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 compared, not bound to
"""Hosts that mean all interfaces -> the loopback address."""
_ELSEWHERE = {"0.0.0.0": "192.0.2.1", "::": "2001:db8::1"}  # noqa: S104 reserved for documentation


def url_of(host: str, port: int) -> str:
    """Return the URL of a server on this machine."""
    near = ALL.get(host, host)
    return f"http://[{near}]:{port}/" if ":" in near else f"http://{near}:{port}/"


def url_for_others(host: str, port: int) -> str:
    """Return the URL of a server for other devices; this machine's own if it is in no network.

    For all interfaces, it has the address of the one that reaches other machines. Nothing is sent.
    """
    if host in ALL:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[host], 9))  # for UDP, this only chooses the interface
            host = str(probe.getsockname()[0])
    return url_of(host, port)


def listen(address: Address) -> socket.socket:
    """Return a socket that listens on an address; PortInUseError if the port is in use."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets whose protocol is given.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        raise PortInUseError(
            f"The server can't listen on {address.host} port {address.port} ({error.strerror}); "
            "choose another with --port, or stop the program that listens there."
        ) from None
    listening.listen(2048)
    return listening
