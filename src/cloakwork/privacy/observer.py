"""The observer that a claim is about: all sensors of a network, one of them, or any few."""

from enum import StrEnum
from typing import NamedTuple

from cloakwork.errors import CalibrationError


class Scope(StrEnum):
    """Against whom a source is hidden."""

    NETWORK = "network"
    """Someone who sees the readings of all sensors."""
    SENSOR = "sensor"
    """Someone who sees the readings of one sensor only."""
    SOME = "some"
    """Someone who sees the readings of a stated number of sensors, whichever they are."""


class StatedObserver(NamedTuple):
    """A scope, and how many sensors its observer sees."""

    scope: Scope
    sensors: int


def stated_observer(scope: Scope | str | int, sensors: int) -> StatedObserver:
    """The observer of a cloak: a scope by its name, or the number of sensors that are seen, whichever they are.

    >>> stated_observer("sensor", 9).sensors, stated_observer(3, 9).scope, stated_observer(9, 9).scope
    (1, <Scope.SOME: 'some'>, <Scope.NETWORK: 'network'>)
    """
    if isinstance(scope, int) and not isinstance(scope, bool):
        if not 1 <= scope <= sensors:
            raise CalibrationError(
                f"scope={scope}: give a number of sensors from 1 to {sensors}, or a name.", scope=scope, sensors=sensors
            )
        ends = {sensors: Scope.NETWORK, 1: Scope.SENSOR}
        return StatedObserver(ends.get(scope, Scope.SOME), scope)
    if scope not in (Scope.NETWORK, Scope.SENSOR):
        raise CalibrationError(
            f'scope={scope!r}: give "network", "sensor", or a whole number of sensors such as 3.', scope=scope
        )
    named = Scope(scope)
    return StatedObserver(named, 1 if named is Scope.SENSOR else sensors)
