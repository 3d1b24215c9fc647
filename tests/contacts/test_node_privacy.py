"""The private density: neighbours by brute force, an independent linear program, the noise, and refusals."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

import cloakwork as cw
from cloakwork._checks import IntArray
from cloakwork.contacts.node_privacy import clipped_contacts
from cloakwork.errors import InputError

PEOPLE = 5


def network(bits: int) -> IntArray:
    """One of the 1,024 networks of five people."""
    met = np.zeros((PEOPLE, PEOPLE), dtype=np.int64)
    for place, (i, j) in enumerate(combinations(range(PEOPLE), 2)):
        met[i, j] = met[j, i] = bits >> place & 1
    return met


def flow(met: IntArray, most: int) -> int:
    return clipped_contacts(sparse.csr_array(met), most)


def rewired(met: IntArray, person: int, rng: np.random.Generator) -> IntArray:
    other, row = met.copy(), rng.random(len(met)) < rng.random()
    row[person] = False
    other[person] = other[:, person] = row
    return other


@pytest.mark.parametrize("most", [1, 2])
def test_no_person_changes_the_clipped_contacts_by_more_than_twice_the_limit(most: int) -> None:
    """All networks of five people, with all networks in which one person met others: equal without that person."""
    networks = [network(bits) for bits in range(1 << 10)]
    flows, numbers = (
        np.array([count(met) for met in networks])
        for count in (lambda met: flow(met, most), lambda met: np.minimum(met.sum(axis=0), most).sum())
    )
    changes = {"flow": 0, "cut degrees": 0}
    for person in range(PEOPLE):
        rest = np.array([np.delete(np.delete(met, person, 0), person, 1).ravel() for met in networks])
        _, alike = np.unique(rest, axis=0, return_inverse=True)
        for name, values in (("flow", flows), ("cut degrees", numbers)):
            for group in range(alike.max() + 1):
                changes[name] = max(changes[name], int(np.ptp(values[alike.ravel() == group])))
    assert changes["flow"] == 2 * most
    assert changes["cut degrees"] == most + PEOPLE - 1, "degrees that are cut one by one are not enough"
    for met, value in zip(networks, flows, strict=True):
        assert value == met.sum() or met.sum(axis=0).max() > most


def test_larger_networks_obey_the_bound_as_well(rng: np.random.Generator) -> None:
    for people, most in product((12, 40), (1, 3, 8)):
        met = np.triu(rng.random((people, people)) < rng.choice([0.1, 0.3, 0.7]), 1).astype(np.int64)
        met += met.T
        first = flow(met, most)
        for person in rng.permutation(people)[:6]:
            assert abs(flow(rewired(met, int(person), rng), most) - first) <= 2 * most


def test_clipped_contacts_are_the_best_of_a_linear_program(rng: np.random.Generator) -> None:
    for _ in range(10):
        met = np.triu(rng.random((9, 9)) < 0.6, 1).astype(np.int64)
        met += met.T
        rows, columns = np.nonzero(met)
        sums = np.vstack([rows == np.arange(9)[:, None], columns == np.arange(9)[:, None]]).astype(float)
        best = optimize.linprog(-np.ones(len(rows)), A_ub=sums, b_ub=np.full(18, 3.0), bounds=(0, 1))
        assert flow(met, 3) == pytest.approx(-float(best.fun or 0))


def test_the_noise_is_whole_and_laplace_of_the_stated_size() -> None:
    """The mean size of Laplace noise is its scale, 2 D / epsilon = 8, known to 5 % from 400 draws."""
    rng, met = np.random.default_rng(1), network(0b1111111111)
    found = [cw.private_density(met, max_contacts=2, epsilon=0.5, rng=rng) for _ in range(400)]
    noise = np.array([one.density * 20 for one in found]) - 10
    np.testing.assert_allclose(noise, np.rint(noise), atol=1e-9)
    assert np.abs(noise).mean() == pytest.approx(8, rel=0.15)
    assert found[0].standard_deviation == pytest.approx(math.sqrt(2) * 8 / 20, rel=1e-2)


def test_a_large_office_has_its_density_with_each_person_hidden() -> None:
    met = cw.Blocks([[0.05, 0.001], [0.001, 0.05]]).sample(500, rng=np.random.default_rng(1)).met
    found = cw.private_density(met, max_contacts=40, epsilon=1.0)
    assert abs(found.density - met.sum() / (500 * 499)) < 12 * found.standard_deviation
    everyone = cw.private_density(met, max_contacts=1_000, epsilon=1.0)
    assert everyone.max_contacts == 499
    assert everyone.standard_deviation / found.standard_deviation == pytest.approx(499 / 40, rel=1e-4)


@pytest.mark.parametrize(
    "options", [{"max_contacts": 0}, {"max_contacts": 2.5}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"met": [[0, 1]]}]
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"met": network(3), "max_contacts": 2, "epsilon": 1.0} | options
    with pytest.raises(InputError):
        cw.private_density(**given)
