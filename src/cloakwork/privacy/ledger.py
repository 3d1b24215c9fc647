"""How much of what may be released has been, and what is left."""

import os
from threading import Lock

from cloakwork.errors import BudgetError


class Ledger:
    """Counts releases up to a limit; belongs to one process, and a copy of it has nothing left.

    `unit` is what is counted, `owner` what it belongs to, and `remedy` what a person can do when it is spent.
    """

    def __init__(self, allowed: int, *, unit: str = "frames", owner: str = "cloak", remedy: str) -> None:
        self._allowed = allowed
        self._unit, self._owner, self._remedy = unit, owner, remedy
        self._spent = 0
        self._process = os.getpid()
        self._lock = Lock()

    @property
    def allowed(self) -> int:
        """How many may be released in all."""
        return self._allowed

    @property
    def spent(self) -> int:
        """How many have been released so far."""
        return self._spent

    def spend(self, number: int) -> None:
        """Take `number` off the budget before they are released, or refuse and take nothing."""
        if os.getpid() != self._process:
            raise BudgetError(
                f"this {self._owner} was made in another process: its budget cannot be shared. Make one {self._owner}, "
                "in one process."
            )
        with self._lock:
            left = self._allowed - self._spent
            if number > left:
                raise BudgetError(
                    f"{number} {self._unit} asked for, {left} of {self._allowed} left: (epsilon, delta) covers "
                    f"{self._allowed}. {self._remedy}",
                    asked=number,
                    left=left,
                    allowed=self._allowed,
                )
            self._spent += number

    def __reduce__(self) -> tuple[object, ...]:
        return _spent_copy, (self._allowed, self._unit, self._owner, self._remedy)


def _spent_copy(allowed: int, unit: str, owner: str, remedy: str) -> Ledger:
    """What a copied or stored ledger becomes: were anything left, it could be spent twice."""
    ledger = Ledger(allowed, unit=unit, owner=owner, remedy=remedy)
    ledger.spend(allowed)
    return ledger
