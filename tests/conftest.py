"""What all tests share: the README's example, compiled once, and a word about parts that are missing."""

import gc
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from cloakwork._checks import FloatArray
from cloakwork._compile import avoid_gathers
from cloakwork.physics import HeatLine
from cloakwork.physics.continuum import HeatKernel
from tests import parts
from tests.compilation import compile_together, needs_compiling

# how long an example takes, or how long it takes to make one, says how busy this machine is and nothing else
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

avoid_gathers()  # as in our programs

collect_ignore_glob = ["micropython/programs/*"]  # they run on MicroPython, and import what is only there


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full-attacks", action="store_true", help="run tests/attacks at full size and print their table")
    parser.addoption("--attacks-table", metavar="FILE", help="write the table of --full-attacks into this file")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist for each worker, in the process that starts them."""
    node.workerinput["needs_compiling"] = needs_compiling()


def pytest_sessionstart(session: pytest.Session) -> None:
    compile_together(session.config)


def pytest_collection_finish() -> None:
    """Hide from the garbage collector what importing and collecting made: it costs a tenth of the time of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20180601)


@pytest.fixture(scope="session")
def line() -> HeatLine:
    return HeatLine(n=100, m=50, T=0.05)


@pytest.fixture(scope="session", autouse=True)
def kept_peaks() -> Iterator[None]:
    """Look for each steepest slope of a line or plane once: hundreds of tests calibrate the same few sites.

    `tests/physics/test_continuum.py` asks for the slopes themselves.
    """

    @lru_cache(maxsize=10_000)
    def kept(
        sensors: bytes, T: float, size: tuple[float, ...], gain: float, weights: bytes
    ) -> tuple[float, FloatArray]:
        positions = np.frombuffer(sensors).reshape(-1, len(size))
        return find(HeatKernel(positions, T, size, gain), np.frombuffer(weights))

    def steepest(kernel: HeatKernel, weights: FloatArray) -> Any:
        sensors, factors = (np.asarray(values, dtype=np.float64).tobytes() for values in (kernel.sensors, weights))
        return kept(sensors, kernel.T, kernel.size, kernel.gain, factors)

    find = HeatKernel.steepest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeatKernel, "steepest", steepest)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    missing = parts.named_in(reason[2] for reason in skipped if isinstance(reason, tuple))
    if missing:
        terminalreporter.write_line(f"Some tests did not run, because of missing parts: {', '.join(sorted(missing))}.")
        terminalreporter.write_line("To install them: sudo scripts/install-parts")
