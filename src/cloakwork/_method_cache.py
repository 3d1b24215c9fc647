"""A decorator that keeps the last results of a method in its object."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def kept(most: int) -> Callable[[F], F]:
    """Keep the results of a method for the `most` last arguments that differ; an array counts by its bytes.

    Threads may compute the same result twice.
    """

    def decorate(method: F) -> F:
        name, defaults = f"_kept_{method.__name__}", method.__defaults__ or ()
        most_given = method.__code__.co_argcount - 1

        @wraps(method)
        def once(self: Any, *given: Any) -> Any:
            results = self.__dict__.setdefault(name, {})
            values = given + defaults[len(defaults) + len(given) - most_given :]
            key = tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)
            if key in results:
                return results[key]
            result = method(self, *given)
            while len(results) >= most:
                results.pop(next(iter(results), None), None)
            results[key] = result
            return result

        return once  # type: ignore[return-value]

    return decorate
