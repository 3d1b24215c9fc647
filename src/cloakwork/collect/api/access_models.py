"""What is said and taken over HTTP about tokens, sessions and what is erased."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from cloakwork.collect.api.models import Asked, Moment, Name, Sensor, Told
from cloakwork.collect.records import Role, Token


class TokenBody(Told):
    """A token without its secret."""

    id: str
    role: Role
    site: str | None
    sensor: str | None
    label: str
    made: int
    revoked: int | None


class TokensBody(Told):
    """All tokens that the operator may manage; there is one page."""

    items: list[TokenBody]
    next: None = None


class NewTokenBody(TokenBody):
    """A token at the one moment when its secret is told."""

    secret: str = Field(examples=["cw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])


class TokenIn(Asked):
    """A token to make: a device's names its site and sensor, another's may be limited to one site."""

    role: Annotated[Literal["device", "analyst", "operator"], Field(examples=["analyst"])]
    site: Name | None = None
    sensor: Sensor | None = None
    label: Annotated[str, Field(max_length=64, examples=["wall screen"])] = ""

    @field_validator("label")
    @classmethod
    def _printable(cls, given: str) -> str:
        if not given.isprintable():
            raise ValueError("use characters that can be printed")
        return given

    @model_validator(mode="after")
    def _whole(self) -> "TokenIn":
        if self.role == "device" and (self.site is None or self.sensor is None):
            raise ValueError("a token for a device needs site and sensor")
        if self.role != "device" and self.sensor is not None:
            raise ValueError("only a token for a device has a sensor")
        return self


class EraseIn(Asked):
    """What to erase: a sensor, a period, both, or everything."""

    sensor: Sensor | None = None
    since: Moment | None = None
    until: Moment | None = None
    everything: bool = False

    @model_validator(mode="after")
    def _meant(self) -> "EraseIn":
        part = (self.sensor, self.since, self.until) != (None, None, None)
        if part == self.everything:
            raise ValueError("give sensor, since or until; or everything = true alone to erase all of the site")
        return self


class ErasedBody(Told):
    """How many rows were removed."""

    readings: int
    results: int
    reports: int


class SessionIn(Asked):
    """A token to log in with, or the one-time code of an address."""

    token: Annotated[str | None, Field(max_length=64, examples=[f"cw_{43 * 'A'}"])] = None
    code: Annotated[str | None, Field(max_length=64, description="Of an address that ends in #code=...")] = None

    @model_validator(mode="after")
    def _one(self) -> "SessionIn":
        if (self.token is None) == (self.code is None):
            raise ValueError("give token or code, one of them")
        return self


class SessionBody(Told):
    """Who is logged in."""

    role: Role
    site: str | None
    label: str


def token_body(token: Token) -> TokenBody:
    """A token as it is told."""
    return TokenBody(**_fields(token))


def new_token_body(token: Token, secret: str) -> NewTokenBody:
    """A new token as it is told, once."""
    return NewTokenBody(**_fields(token), secret=secret)


def _fields(token: Token) -> dict[str, Any]:
    return {name: getattr(token, name) for name in TokenBody.model_fields}
