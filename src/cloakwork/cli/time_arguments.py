"""Moments and spans of time, as people write them in options."""

import re
from contextlib import suppress
from datetime import UTC, datetime

from typer import BadParameter

DAY_MS = 86_400_000
_MILLISECONDS = {"s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 604_800_000}
_LONGEST_SPAN = 36_525 * DAY_MS  # a hundred years
_LATEST = 253_402_300_800_000  # the year 10000


def parse_moment(text: str) -> int:
    """Return the Unix milliseconds of an ISO 8601 date or time (UTC by default), or of a number.

    >>> parse_moment("2026-11-15T08:00")
    1794729600000
    """
    time = int(text) if re.fullmatch("[0-9]{1,15}", text) else None
    if time is None:
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            time = round(1000 * moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    if time is not None and time < 0:
        raise BadParameter(f"{text[:64]}: times before 1970 cannot be used. Give a later one.")
    if time is None or time >= _LATEST:
        raise BadParameter(
            f"{text[:64]}: give a date such as 2026-11-15, a time such as 2026-11-15T08:00+01:00 (UTC if no zone is "
            "given), or Unix milliseconds."
        )
    return time


def parse_span(text: str) -> int:
    """Return the milliseconds of a span such as 15m, 1h, 1d or 1w.

    >>> parse_span("15m")
    900000
    """
    match = re.fullmatch(r"([0-9]{1,6})(s|m|min|h|d|w)", text.strip())
    span = 0 if match is None else int(match[1]) * _MILLISECONDS[match[2]]
    if not 0 < span <= _LONGEST_SPAN:
        raise BadParameter(f"{text[:64]}: give a whole number with m, h, d or w, such as 15m, 1h, 1d or 1w.")
    return span


def shown(milliseconds: int) -> str:
    """A moment in UTC, to the second."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
