"""Heat on a plane: the product of two lines."""

import numpy as np

from cloakwork.physics import HeatLine, HeatPlane, Metric


def test_the_plane_is_the_product_of_two_lines() -> None:
    plane = HeatPlane(n=(6, 4), m=(3, 5), T=0.02, size=(2.0, 1.0))
    x = HeatLine(n=6, m=3, T=0.02, length=2.0).matrix
    y = HeatLine(n=4, m=5, T=0.02, length=1.0).matrix
    assert np.allclose(plane.matrix, np.kron(x, y), rtol=1e-14, atol=0)


def test_place_i_j_has_index_i_ny_plus_j() -> None:
    plane = HeatPlane(n=(3, 2), m=(1, 1), T=0.1, size=(3.0, 4.0))
    assert plane.space.places.tolist() == [[1, 2], [1, 4], [2, 2], [2, 4], [3, 2], [3, 4]]
    assert plane.space.index((2.1, 3.8)) == 3
    assert plane.space.metric is Metric.PLANE


def test_neighbours_alone_would_understate_a_diagonal_move() -> None:
    plane = HeatPlane(n=(40, 40), m=[(1.0, 1.0)], T=5.0)
    assert plane.moves().steepest().value > 1.35 * plane.steps().norms().max()


def test_one_sensors_slope_is_the_steepest_of_its_bell() -> None:
    """|grad| = r/(2T) exp(-r^2/4T)/(4 pi T) peaks at r = sqrt(2T)."""
    plane = HeatPlane(n=(3, 3), m=[(0.5, 0.5)], T=0.01, gain=2.0)
    r = np.linspace(0, 0.5, 20001)
    steepest = float((2.0 * r / 0.02 * np.exp(-(r**2) / 0.04) / (0.04 * np.pi)).max())
    assert steepest <= plane.moves().each[0] <= steepest * 1.0001
    assert steepest <= plane.moves().steepest().value <= steepest * 1.005
