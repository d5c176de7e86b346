"""What several test files share: the server that speaks the protocols of models."""

from __future__ import annotations

import sys
from pathlib import Path

# `llm_server` lies beside this file, and other distributions' tests use it too.
if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)

from llm_server.fixtures import nowhere, server

__all__ = ["nowhere", "server"]
