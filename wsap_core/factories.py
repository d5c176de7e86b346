"""Factories: callables or `"module:attribute"` strings, imported on first use so that plugins can stay light."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from wsap_core.errors import PluginError, WsapError

Reference = str | Callable[..., Any]
"""`"module:attribute"` or the object itself."""


def load(reference: Reference) -> Any:
    """Import and return the object that a reference names; `PluginError` if that fails."""
    if not isinstance(reference, str):
        return reference
    module_name, _, attribute = reference.partition(":")
    try:
        target: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            target = getattr(target, part)
    except WsapError:
        raise  # a module may explain in its own words what is missing
    except (Exception, SystemExit) as error:
        what = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise PluginError(f"{reference!r} can't be loaded: {what}.") from error
    return target


def build(reference: Reference, context: object) -> Any:
    """Return what a factory creates, passing it the context if it takes an argument; `PluginError` if that fails."""
    factory = load(reference)
    parameters: Iterable[inspect.Parameter] = ()
    # A class that inherits from a protocol without an __init__ has typing's own, which takes no arguments.
    if getattr(getattr(factory, "__init__", None), "__module__", "") != "typing":
        with contextlib.suppress(TypeError, ValueError):  # a builtin without a signature gets no arguments
            parameters = inspect.signature(factory).parameters.values()
    takes_context = any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
        and (p.default is p.empty or p.name in ("context", "ctx"))
        for p in parameters
    )
    try:
        return factory(context) if takes_context else factory()
    except (Exception, SystemExit) as error:
        if isinstance(error, WsapError):
            raise
        name = getattr(factory, "__qualname__", str(factory))
        raise PluginError(f"{name} could not be created: {type(error).__name__}: {error}.") from error
