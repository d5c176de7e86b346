"""The backend `outlines/<model>`: language models in process, with replies constrained token by token."""

from __future__ import annotations
