"""How many frames a cloak has released, and may still release."""

import os
from threading import Lock

from cloakwork.errors import BudgetError


class Ledger:
    """Counts frames up to a limit; belongs to one process and cannot be copied."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._spent = 0
        self._process = os.getpid()
        self._lock = Lock()

    @property
    def allowed(self) -> int:
        """Frames that may be released in all."""
        return self._allowed

    @property
    def spent(self) -> int:
        """Frames released so far."""
        return self._spent

    def spend(self, frames: int) -> None:
        """Take `frames` off the budget before they are released, or refuse and take nothing."""
        if os.getpid() != self._process:
            raise BudgetError(
                "this cloak was made in another process: its budget cannot be shared. Make one cloak, in one process."
            )
        with self._lock:
            left = self._allowed - self._spent
            if frames > left:
                raise BudgetError(
                    f"{frames} frames asked for, {left} of {self._allowed} left in this window: (epsilon, delta) "
                    f"covers {self._allowed}. Make the cloak with readings_per_window={self._spent + frames}, which "
                    "adds noise, or make a new cloak when the next window has begun; to experiment, use "
                    "simulate(readings, rng=...).",
                    asked=frames,
                    left=left,
                    allowed=self._allowed,
                )
            self._spent += frames

    def __reduce__(self) -> str:
        raise BudgetError("a budget cannot be copied or stored: the copy could be spent twice.")
