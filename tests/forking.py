"""Work in a forked process, which has a copy of everything that its parent has."""

import multiprocessing
import os
from collections.abc import Callable

import pytest

from cloakwork.errors import CloakworkError
from tests.waiting import PATIENCE

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def error_in_fork(act: Callable[[], object]) -> str:
    """Do something in a forked process; return the name of the error that it raises, empty if none."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def child() -> None:
        try:
            act()
        except CloakworkError as problem:
            queue.put(type(problem).__name__)
        else:
            queue.put("")

    process = context.Process(target=child)
    process.start()
    name: str = queue.get(timeout=PATIENCE)
    process.join()
    return name
