"""What the HTTP interface needs of the other parts of the collector."""

from collections.abc import Sequence
from typing import Protocol

from cloakwork.collect.intake import IntakeState
from cloakwork.collect.live import Lag
from cloakwork.collect.problems import Reason
from cloakwork.collect.records import Reading, Verdict


class Intake(Protocol):
    """Takes readings in."""

    def submit(self, readings: Sequence[Reading]) -> list[Verdict]:
        """Store them, all or none; raises `Busy` or `InputError`. Blocks until they are durable."""

    def count(self, reason: Reason, site: str = "", sensor: str = "") -> None:
        """Count a request that could not be used."""

    @property
    def state(self) -> IntakeState:
        """How it goes."""


class Live(Protocol):
    """Recovers frames as they come."""

    def lag(self, site: str) -> Lag:
        """How it goes at one site."""


class BrokerState(Protocol):
    """How the link to the broker is."""

    @property
    def connected(self) -> bool:
        """Whether readings can come."""

    @property
    def since(self) -> int:
        """Since when that is so, in Unix milliseconds."""

    @property
    def reason(self) -> str:
        """Why they cannot."""


class Broker(Protocol):
    """The link to the MQTT broker."""

    @property
    def state(self) -> BrokerState:
        """How it goes."""
