"""Pages of a long answer."""

import base64
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from cloakwork.collect.api.errors import Refusal
from cloakwork.collect.api.models import Moment
from cloakwork.collect.api.parts import Parts
from cloakwork.collect.records import Page
from cloakwork.errors import InputError

Item = TypeVar("Item")
_CURSOR = re.compile(r"[A-Za-z0-9_.-]{1,120}").fullmatch


class Paged(BaseModel):
    """A period and a page of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    since: Annotated[Moment | None, Field(description="From this time on, in Unix milliseconds.")] = None
    until: Annotated[Moment | None, Field(description="Before this time, in Unix milliseconds.")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="Length of a page.")] = 100
    after: Annotated[
        str | None, Field(max_length=200, description="What the page before had in `next`.", examples=[None])
    ] = None

    def period(self) -> dict[str, Any]:
        """What the store wants to know."""
        return {"since": self.since, "until": self.until, "limit": self.limit, "after": _inside(self.after)}


async def read_page(parts: Parts, call: Callable[..., Page[Item]], site: str, **asked: Any) -> Page[Item]:
    """A page of the store, newest first."""
    try:
        return await parts.work.read(call, site, newest_first=True, **asked)
    except InputError:
        raise _no_cursor() from None


def outside(cursor: str | None) -> str | None:
    """A cursor of the store as it is told: nobody should make one up.

    >>> outside("17.s1.3")
    'MTcuczEuMw'
    """
    return None if cursor is None else base64.urlsafe_b64encode(cursor.encode()).decode().rstrip("=")


def _inside(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        raise _no_cursor() from None
    if not _CURSOR(text):
        raise _no_cursor()
    return text


def _no_cursor() -> Refusal:
    return Refusal(
        422, "invalid", "query.after: not a cursor. Give what the page before had in `next`, or leave it out."
    )
