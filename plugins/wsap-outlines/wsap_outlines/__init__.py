"""Language models in process, their replies bound token by token: the backend `outlines/<model>`."""

from __future__ import annotations
