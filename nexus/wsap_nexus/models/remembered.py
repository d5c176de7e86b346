"""The models that were used on this machine: which one goes without saying, what each costs and how fast it was.

One small file, `models.json` in WSAP's folder, readable by its owner alone and replaced as a whole.
Two programs that write at the same moment leave what the second one wrote. No key is ever in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsap_core.errors import StorageReadOnlyError
from wsap_core.untrusted import one_line
from wsap_nexus.paths import home

if TYPE_CHECKING:
    from wsap_llm.backends.meter import Pace

NAME = "models.json"
"""The file's name."""

KEPT = 100
"""Models that are remembered at most; the ones used longest ago go first."""

_LARGEST = 1 << 20


@dataclass(frozen=True)
class Known:
    """What is known of one model from using it, or from what its user said."""

    price_in: float | None = None
    """US dollars for a million tokens of prompt."""
    price_out: float | None = None
    """US dollars for a million tokens of reply."""
    calls: int = 0
    """Calls that the following was measured over."""
    seconds_a_call: float | None = None
    reply_tokens: float | None = None
    """Tokens of a reply, thinking included."""
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class Remembered:
    """What is in the file."""

    default: str | None = None
    """The model that is meant where none is named."""
    chosen: bool = False
    """Whether a person chose it; otherwise it is the one used last."""
    since: str = ""
    """When it became that, ISO 8601."""
    models: Mapping[str, Known] = field(default_factory=dict)
    """By address."""
    damage: str = ""
    """Why the file can't be read, in one sentence; empty if it can, or if there is none."""

    def known(self, address: str) -> Known:
        """Return what is known of a model; nothing, if it was never used."""
        return self.models.get(address, Known())

    def how(self) -> str:
        """Return why the default is the default, in a few words."""
        return "chosen with `wsap models use`" if self.chosen else "the model used last"


def place(environ: Mapping[str, str]) -> Path:
    """Return where the file is; it may not exist."""
    return home(environ) / NAME


def read(environ: Mapping[str, str]) -> Remembered:
    """Return what is remembered: nothing where there is no file, and nothing but the damage where it can't be read."""
    path = place(environ)
    try:
        with path.open(encoding="utf-8") as file:
            data = json.loads(file.read(_LARGEST))
        default = data["default"]
        models = {str(name): _known(found) for name, found in data["models"].items()}
        return Remembered(
            default if isinstance(default, str) and default else None,
            data["chosen"] is True,
            str(data["since"])[:40],
            models,
        )
    except FileNotFoundError:
        return Remembered()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Remembered(damage=f"{path} can't be read ({type(error).__name__}: {one_line(error)[:100]}).")


def write(remembered: Remembered, environ: Mapping[str, str]) -> None:
    """Replace the file by one with this in it.

    Raises:
        StorageReadOnlyError: it can't be written.
    """
    path = place(environ)
    models = dict(list(remembered.models.items())[-KEPT:])
    text = json.dumps(
        {
            "default": remembered.default,
            "chosen": remembered.chosen,
            "since": remembered.since,
            "models": {address: asdict(known) for address, known in models.items()},
        },
        indent=1,
    )
    scratch: str | None = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Readable by its owner alone from the first byte on: that is how mkstemp makes files.
        handle, scratch = tempfile.mkstemp(prefix=f".{NAME}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).replace(path)
        scratch = None
    except OSError as error:
        raise StorageReadOnlyError(
            f"{path} can't be written ({error.strerror or error}); set WSAP_HOME to a folder that can."
        ) from None
    finally:
        if scratch is not None:
            with contextlib.suppress(OSError):
                Path(scratch).unlink()


def used(remembered: Remembered, address: str, pace: Pace, now: datetime | None = None) -> Remembered:
    """Return what is remembered after a model has answered: it is the default, unless a person chose another."""
    known = replace(
        remembered.known(address),
        calls=pace.calls,
        seconds_a_call=pace.seconds_a_call,
        reply_tokens=pace.reply_tokens,
        tokens_per_second=pace.tokens_per_second,
    )
    after = replace(remembered, models=_moved(remembered, address, known), damage="")
    return after if remembered.chosen else replace(after, default=address, since=_stamp(now))


def measured(remembered: Remembered, address: str, pace: Pace) -> Remembered:
    """Return what is remembered after one request for the sake of measuring; more calls are not replaced by it."""
    known = remembered.known(address)
    if known.calls > pace.calls or not pace.calls:
        return remembered
    kept = Remembered(remembered.default, True, remembered.since, remembered.models)
    return replace(remembered, models=used(kept, address, pace).models, damage="")


def chosen(
    remembered: Remembered,
    address: str,
    *,
    price_in: float | None = None,
    price_out: float | None = None,
    now: datetime | None = None,
) -> Remembered:
    """Return what is remembered after a person chose a model; prices that are None stay as they were."""
    known = remembered.known(address)
    known = replace(
        known,
        price_in=known.price_in if price_in is None else price_in,
        price_out=known.price_out if price_out is None else price_out,
    )
    return Remembered(address, True, _stamp(now), _moved(remembered, address, known))


def forgotten(remembered: Remembered) -> Remembered:
    """Return what is remembered without a default; what is known of the models stays."""
    return Remembered(models=remembered.models)


def _moved(remembered: Remembered, address: str, known: Known) -> dict[str, Known]:
    """Return the models with this one as the one used last."""
    return {name: found for name, found in remembered.models.items() if name != address} | {address: known}


def _known(found: Any) -> Known:
    # Any: what the file holds; whatever is of another kind is as if it were not there.
    values = {}
    for item in fields(Known):
        value = found.get(item.name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            values[item.name] = int(value) if item.name == "calls" else float(value)
    return Known(**values)  # type: ignore[arg-type]


def _stamp(now: datetime | None) -> str:
    return (now or datetime.now(UTC)).isoformat(timespec="seconds")
