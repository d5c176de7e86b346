"""Where a server listens: its address, and the socket."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from wsap_core.errors import ConfigError, UsageError

PORT = 9998
"""Where a nexus listens if nothing else is said."""


class PortInUseError(UsageError):
    """Something else listens there."""

    code = "PORT_IN_USE"
    http_status = 409


@dataclass(frozen=True)
class Address:
    """Where a nexus listens."""

    host: str = "127.0.0.1"
    port: int = PORT

    def check(self) -> None:
        """Refuse a port that is none.

        Raises:
            ConfigError: it is not from 0 to 65535.
        """
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"A port is a number from 0 to 65535, not {self.port}.")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def url_of(host: str, port: int) -> str:
    """Return the address by which it is reached from this machine."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 compared, not bound to
    return f"http://[{near}]:{port}/" if ":" in near else f"http://{near}:{port}/"


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        PortInUseError: something else listens there.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # The protocol is named, because asyncio sends small answers at once (TCP_NODELAY) only where it is.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        raise PortInUseError(
            f"The nexus can't listen on {address.host} port {address.port} ({error.strerror}); "
            "choose another with --port, or stop what listens there."
        ) from None
    listening.listen(512)
    return listening
