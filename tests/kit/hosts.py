"""Hosts for tests: the parts of our own that need nothing but this repository, and what a test adds."""

from __future__ import annotations

import os
from pathlib import Path

import wsap_core
from wsap_core.discovery import FoundPlugin
from wsap_core.host import BUILTIN, PluginHost

OURS = (
    BUILTIN,
    FoundPlugin("llm", "wsap_llm.plugin", "wsap-llm", wsap_core.__version__),
    FoundPlugin("matrix", "wsap_matrix.plugin", "wsap-matrix", wsap_core.__version__),
)
"""The kernel's own parts, the agent `llm` with what belongs to it, and the matrix games."""


def host_with_ours() -> PluginHost:
    """Return a host with `OURS`, whatever else is installed."""
    host = PluginHost(environ={})
    for found in OURS:
        host.load(found)
    return host


def with_kit(**more: str) -> dict[str, str]:
    """Return an environment for a process of its own in which this folder's modules can be imported."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **more}
