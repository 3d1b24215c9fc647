"""Secrets are found from answers of which a share below 0.239 is wrong, and not from more."""

import numpy as np
import pytest

from papers.lp_decoding import SHARE, answers, decoded, misled


def test_the_share_is_that_of_the_paper() -> None:
    assert pytest.approx(0.239, abs=5e-4) == SHARE
    sizes = np.sort(np.abs(np.random.default_rng(1).standard_normal(400_000)))[::-1]
    half = int(np.searchsorted(np.cumsum(sizes), sizes.sum() / 2))
    assert half / len(sizes) == pytest.approx(SHARE, abs=3e-3)


@pytest.mark.parametrize(("share", "found"), [(SHARE - 0.03, True), (SHARE + 0.03, False)])
def test_a_secret_is_found_below_the_share_and_lost_above(share: float, found: bool) -> None:
    rng = np.random.default_rng(3)
    secret = rng.integers(0, 2, 4).astype(float)
    questions, true = answers(600, secret, rng)
    guess = decoded(questions, misled(questions, true, share, rng))
    assert np.allclose(guess, secret, atol=1e-6) is found
