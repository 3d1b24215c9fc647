"""The observer that a claim is about: all sensors of a network, one of them, or any few."""

from enum import StrEnum
from typing import NamedTuple

from cloakwork.errors import CalibrationError
from cloakwork.privacy.design import member_of


class Scope(StrEnum):
    """Against whom a source is hidden."""

    NETWORK = "network"
    """Someone who sees the readings of all sensors."""
    SENSOR = "sensor"
    """Someone who sees the readings of one sensor only."""


class StatedObserver(NamedTuple):
    """A scope, and how many sensors its observer sees."""

    scope: Scope
    sensors: int


def stated_observer(scope: Scope | str | int, sensors: int) -> StatedObserver:
    """The observer of a cloak: a scope by its name, or the number of sensors that are seen, whichever they are.

    >>> stated_observer("sensor", 9).sensors, stated_observer(3, 9).scope
    (1, <Scope.NETWORK: 'network'>)
    """
    if isinstance(scope, int) and not isinstance(scope, bool):
        if not 1 <= scope <= sensors:
            raise CalibrationError(
                f"scope={scope}: give a number of sensors from 1 to {sensors}, or a name.", scope=scope, sensors=sensors
            )
        return StatedObserver(Scope.SENSOR if scope == 1 else Scope.NETWORK, scope)
    named = member_of(Scope, "scope", scope)
    return StatedObserver(named, 1 if named is Scope.SENSOR else sensors)
