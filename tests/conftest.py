"""What all tests share: the README's example, compiled once."""

import numpy as np
import pytest

from cloakwork.physics import HeatLine


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20180601)


@pytest.fixture(scope="session")
def line() -> HeatLine:
    return HeatLine(n=100, m=50, T=0.05)
