"""How long a server asks clients to wait before the next request."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks clients to wait; None if it does not say, or in an unknown form.

    `Retry-After` is seconds or a date (RFC 9110, section 10.2.3); a date is measured against the answer's own `Date`,
    so that the local clock does not matter. OpenAI and Azure add `retry-after-ms`.
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _sane(float(milliseconds) / 1000)
        given = headers.get("Retry-After")
        if given is None:
            return None
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", given):
            return _sane(float(given))
        until = parsedate_to_datetime(given)
        date = headers.get("Date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return _sane((until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
