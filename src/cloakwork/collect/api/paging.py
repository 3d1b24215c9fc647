"""Pages of a long answer."""

import base64
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from cloakwork.collect.api.auth import Caller
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


def as_json(body: BaseModel) -> Response:
    """An answer that is ready: to write a long one down takes a while too, and belongs where it was read."""
    return Response(body.model_dump_json(), media_type="application/json")


async def answer_page(
    parts: Parts, caller: Caller, asked: Paged, read: Callable[..., Page[Item]], body: Callable[[Page[Item]], BaseModel]
) -> Response:
    """A page of the store, newest first; it counts by its length, and one token has one at a time."""
    period = asked.period()
    parts.gate.charge(caller, max(0.0, asked.limit / parts.settings.rows_per_request - 1.0))

    def page() -> Response:
        return as_json(body(read(newest_first=True, **period)))

    try:
        async with parts.gate.turn(caller, "page"):
            return await parts.work.read(page)
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
