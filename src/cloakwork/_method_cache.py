"""A decorator that keeps the last results of a method in its object."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
_MISSING = object()


def memoize(max_results: int) -> Callable[[F], F]:
    """Keep the results of a method for the `max_results` last arguments that differ; an array counts by its content.

    The method takes its arguments by position. Threads may compute the same result twice.
    """

    def decorate(method: F) -> F:
        name, defaults = f"_kept_{method.__name__}", method.__defaults__ or ()
        max_arguments = method.__code__.co_argcount - 1

        @wraps(method)
        def once(self: Any, *given: Any) -> Any:
            results = self.__dict__.setdefault(name, {})
            values = given + defaults[len(defaults) + len(given) - max_arguments :]
            key = tuple(_content(value) if isinstance(value, np.ndarray) else value for value in values)
            result = results.get(key, _MISSING)
            if result is _MISSING:
                result = method(self, *given)
                for oldest in list(results)[: len(results) - max_results + 1]:
                    results.pop(oldest, None)  # unless another thread has removed it
                results[key] = result
            return result

        return once  # type: ignore[return-value]

    return decorate


def _content(array: np.ndarray[Any, Any]) -> tuple[object, ...]:
    return array.tobytes(), array.shape, array.dtype.str
