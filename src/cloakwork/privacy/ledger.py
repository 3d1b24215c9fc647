"""Keeping a claim true: objects that cannot change, and a count of releases."""

import os
from threading import Lock

from cloakwork.errors import BudgetError


class Immutable:
    """Base of every object that carries a claim: once `_freeze` is called, no attribute can be set."""

    _kind = "cloak"
    _frozen = False

    def _freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if self._frozen:
            raise AttributeError(f"{name}: a {self._kind} is immutable, so that its claim stays true. Make a new one.")
        object.__setattr__(self, name, value)


class Ledger:
    """Counts releases up to a limit. It belongs to one process, and a copy of it has nothing left.

    `unit` names what is counted, `owner` the object that the ledger belongs to, and `remedy` what a person can do once
    the limit is reached.
    """

    def __init__(self, allowed: int, *, unit: str = "frames", owner: str = "cloak", remedy: str) -> None:
        self._allowed = allowed
        self._unit, self._owner, self._remedy = unit, owner, remedy
        self._spent = 0
        self._process = os.getpid()
        self._lock = Lock()

    @property
    def allowed(self) -> int:
        """How many may be released in total."""
        return self._allowed

    @property
    def spent(self) -> int:
        """How many have been released so far."""
        return self._spent

    def spend(self, number: int) -> None:
        """Take `number` off the budget before the release, or refuse and take nothing."""
        if os.getpid() != self._process:
            raise BudgetError(
                f"this {self._owner} was made in another process, and processes cannot share its budget. Make one "
                f"{self._owner}, in one process.",
                process=self._process,
            )
        with self._lock:
            left = self._allowed - self._spent
            if number > left:
                raise BudgetError(
                    f"{number} {self._unit} requested, {left} of {self._allowed} left: (epsilon, delta) covers "
                    f"{self._allowed}. {self._remedy}",
                    asked=number,
                    left=left,
                    allowed=self._allowed,
                )
            self._spent += number

    def __reduce__(self) -> tuple[object, ...]:
        return _spent_copy, (self._allowed, self._unit, self._owner, self._remedy)


def _spent_copy(allowed: int, unit: str, owner: str, remedy: str) -> Ledger:
    """A copied or unpickled ledger is spent; otherwise the same budget could be spent twice."""
    ledger = Ledger(allowed, unit=unit, owner=owner, remedy=remedy)
    ledger.spend(allowed)
    return ledger
