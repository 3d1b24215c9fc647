"""Losses of many reports: against closed forms, and one figure wherever they are used."""

import math

from cloakwork.privacy.losses import MAX_LISTED, laplace_losses, report_losses, sum_of_losses


def test_more_reports_than_are_listed_lose_no_more_than_the_rest_allows() -> None:
    few, many = (report_losses(0.001, number) for number in (MAX_LISTED, MAX_LISTED + 1))
    assert few.beyond == 0 < many.beyond < 1e-25
    assert 0 < many.epsilon(1e-6) / few.epsilon(1e-6) - 1 < 1e-3


def test_one_of_two_readings_with_laplace_noise_has_the_closed_form() -> None:
    one = laplace_losses(1.0, 1)
    for epsilon in (0.0, 0.3, 0.9):
        exact = -math.expm1((epsilon - 1.0) / 2)
        assert exact <= one.delta(epsilon) <= exact + 2e-4
    assert one.delta(1.0 + 1e-9) == 0.0


def test_a_sum_of_kinds_is_at_least_each_and_at_most_both() -> None:
    bits, laplace = report_losses(0.1, 100), laplace_losses(0.2, 30)
    together = sum_of_losses([bits, laplace]).epsilon(1e-6)
    assert max(bits.epsilon(1e-6), laplace.epsilon(1e-6)) < together
    assert together < bits.epsilon(5e-7) + laplace.epsilon(5e-7)
