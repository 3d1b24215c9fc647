"""Every exception and warning of Cloakwork: what was given, what is allowed, what to do.

The values behind a message are attributes of the exception, so a program need not
parse sentences. No message ever holds a true reading.
"""

from collections.abc import Mapping


class CloakworkError(Exception):
    """The parent of all errors that Cloakwork raises on purpose; `values` holds what the message speaks of."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message)
        self.values = values

    def __getattr__(self, name: str) -> object:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(name)


class InputError(CloakworkError, ValueError):
    """An argument is malformed: wrong shape, not finite, out of range."""


class PhysicsError(InputError):
    """A model that cannot be built: a sensor outside the space, a disconnected graph, an unreadable drawing."""


class CalibrationError(InputError):
    """A privacy claim that cannot be met, or that the chosen noise does not meet."""


class ReadingError(InputError):
    """A reading that cannot be cloaked or recovered; names the sensor, never the value."""


class MissingExtraError(CloakworkError, ImportError):
    """An optional library is not installed."""


class HardwareStepWarning(UserWarning):
    """Readings look rounded by hardware, and no step is stated. It is for the caller: never publish it."""


class IncompatibleMapsError(InputError):
    """Two maps that cannot be compared."""


class UnverifiableError(InputError):
    """A privacy claim that no finite number of queries can verify."""


class SiteError(InputError):
    """A site file that says something impossible; names the line, the key, what was given and what is allowed."""


class PlanError(SiteError):
    """A plan that cannot be read, or does not fit its site.

    `reason` is a word for what is wrong, `plan` and `site` are the files (`site` may be None), and `rewrite` says
    whether writing the plan again helps.
    """


class KeyFileError(InputError):
    """A file of keys that cannot be used or should not be trusted; never holds a key."""


class BudgetError(CloakworkError):
    """A release that would spend more privacy than the cloak was made for."""


class BrokerError(CloakworkError):
    """The broker, or the device behind it, did not answer in time. The recording so far is in its file."""


class ClusterError(CloakworkError):
    """A cluster that cannot run parts: no scheduler, no worker, or a worker of another version."""


class ApiError(CloakworkError):
    """An HTTP request that the collector refuses: `status` is the HTTP status, `code` a stable name for programs.

    `retry_s` says after how many seconds to try again, where that helps.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code, retry_s=retry_s)
        self.status, self.code, self.retry_s, self.headers = status, code, retry_s, dict(headers or {})


class StoreError(CloakworkError):
    """The store cannot do this, and a retry alone will not help."""


class StoreAwayError(StoreError):
    """The store is unavailable for now; retry. The failed call stored everything or nothing."""


class StoreBusyError(StoreAwayError):
    """Another program or transaction held a lock for longer than the store waits."""


class StoreFullError(StoreAwayError):
    """The disk is full."""


class BusyError(CloakworkError):
    """The collector cannot accept readings for now; none was acknowledged, and all may be sent again."""
