"""Find groups of people from flipped contacts, and how much the groups meet."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special
from scipy.cluster.vq import kmeans2
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from cloakwork._checks import FloatArray, IntArray, count, frozen, positive, whole_numbers
from cloakwork.contacts.blocks import Blocks
from cloakwork.contacts.contact_pairs import checked_network, report_rates
from cloakwork.errors import InputError
from cloakwork.privacy import Flip, share_limits

LEVEL = 0.95  # probability that limits hold
DENSE = 200  # people up to whom all eigenvalues are computed
STARTS = 8


@final
@dataclass(frozen=True, eq=False)
class Communities:
    """Groups of people, and how much the groups meet.

    `labels` is the group of each person (n,); all are 0 if no group stands out from the noise, and `findable` is False.
    `densities` (k, k) is the estimated probability that members of two groups meet, with standard `errors` and 95 %
    `limits` (k, k, 2). They take the labels as given. They are then unbiased, so they may lie outside [0, 1]; labels
    that were found, and are partly wrong, bring them closer together. `snr` is the estimated signal to noise of each
    direction that stands out, largest first; it is empty if the labels were given.
    """

    labels: IntArray
    densities: FloatArray
    errors: FloatArray
    limits: FloatArray
    snr: FloatArray
    findable: bool

    @property
    def blocks(self) -> Blocks:
        """The groups as a block model, with densities cut to [0, 1]."""
        return Blocks(np.clip(self.densities, 0.0, 1.0), shares=np.bincount(self.labels))

    @property
    def status(self) -> str:
        """What was found, in a sentence."""
        if not self.findable:
            return "No group stands out from the noise: see plan_communities for the people and the epsilon it takes."
        strength = ", ".join(f"{value:.2f}" for value in self.snr)
        return f"{len(self.densities)} groups{f' with signal to noise {strength}' if strength else ', as given'}."


def communities(
    flipped: Any,
    *,
    flip: Flip,
    k: int | None = None,
    labels: ArrayLike | None = None,
    kept: float = 1.0,
    false_alarms: float = 0.01,
) -> Communities:
    """Find k groups of people from flipped contacts, or take known groups, and estimate how much they meet.

    Where no group stands out from the noise, all people are one group and `findable` is False.

    Parameters
    ----------
    flipped
        The reports: a symmetric array (n, n) of 0 and 1, dense or sparse, as `simulate_contacts` returns.
    flip, kept
        How the devices flipped, and which share of their ones they sent.
    k, labels
        How many groups to look for; or the known group of each person, whole numbers from 0 without gaps.
    false_alarms
        How often groups may be found where there are none; 1 finds some always.

    Notes
    -----
    Without groups, the eigenvalues of the reports less their mean end near 2 sqrt(n v), for a variance v of a report.
    Those beyond sqrt(n v) (2 + 1/d + 2/d^2 + c n^(-2/3)), of the k largest in size, give each person coordinates of
    equal noise, and k-means groups them; d is the mean number of ones of a person and c a quantile of the law of Tracy
    and Widom. A density is (share of ones - lie)/(truth - lie), for the rates of ones without and with a contact.

    >>> from cloakwork.contacts import simulate_contacts
    >>> rng, flip = np.random.default_rng(1), Flip(epsilon=3.0, readings_per_window=1)
    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]]).sample(500, rng=rng)
    >>> found = communities(simulate_contacts(office.met, flip, rng=rng), k=2, flip=flip)
    >>> right = float(np.mean(found.labels == office.labels))
    >>> found.findable, max(right, 1 - right) > 0.9
    (True, True)
    """
    table = checked_network("flipped", flipped)
    lie, truth = report_rates(flip, kept)
    n = table.shape[0]
    if k is not None and labels is None:
        groups, snr = _found(table, count("k", k, least=2), positive("false_alarms", false_alarms))
    elif k is None and labels is not None:
        groups, snr = whole_numbers("labels", labels, n), np.empty(0)
        if groups.min() < 0 or groups.max() >= n or not np.bincount(groups).all():
            raise InputError("labels: number the groups from 0 without gaps.")
    else:
        raise InputError("give either k, how many groups to look for, or labels, the groups if they are known.")
    sizes = np.bincount(groups).astype(np.float64)
    member = sparse.csr_array((np.ones(n), (np.arange(n), groups)))
    ones, pairs = (member.T @ table @ member).toarray(), np.outer(sizes, sizes) - np.diag(sizes)
    for counts in (ones, pairs):
        np.fill_diagonal(counts, counts.diagonal() / 2)
    share, gap = ones / np.maximum(pairs, 1), truth - lie
    alone = pairs == 0  # one person has no pairs, and any density is possible
    error = np.where(alone, np.inf, np.sqrt(share * (1 - share) / np.maximum(pairs, 1)) / gap)
    limits = np.clip((share_limits(ones, pairs, LEVEL) - lie) / gap, 0.0, 1.0)
    densities = np.where(alone, 0.5, (share - lie) / gap)
    findable = labels is not None or len(snr) > 0
    return Communities(frozen(groups), frozen(densities), frozen(error), frozen(limits), frozen(snr), findable)


def _found(table: sparse.csr_array, k: int, false_alarms: float) -> tuple[IntArray, FloatArray]:
    """Labels from 0 without gaps, and the signal to noise of the directions that stand out."""
    n = table.shape[0]
    if k > n:
        raise InputError(f"k={k}: there are {n} people. Give at most as many groups.", k=k, n=n)
    mean = table.nnz / (n * (n - 1))
    if not 0 < mean < 1:
        return np.zeros(n, dtype=np.int64), np.empty(0)
    noise = math.sqrt(n * mean * (1 - mean))
    values, vectors = _largest(table.astype(np.float64), mean, k)
    size = np.abs(values) / noise
    # the law of Tracy and Widom is close to a shifted gamma law (Chiani); a spectrum has two ends
    rare = float(special.gammainccinv(46.446, min(false_alarms, 1.0) / 2)) * 0.186054 - 9.84801
    shown = size > 2 + 1 / (n * mean) + 2 / (n * mean) ** 2 + rare * n ** (-2 / 3)
    if false_alarms >= 1:
        shown = size >= size.max(initial=0.0)
    if not shown.any():
        return np.zeros(n, dtype=np.int64), np.empty(0)
    size = np.maximum(size[shown], 2.0)
    root = (size + np.sqrt(size**2 - 4)) / 2  # a signal of root^2 moves an eigenvalue to root + 1/root
    places = vectors[:, shown] * root * math.sqrt(n)
    places = places + 1e-9 * np.random.default_rng(0).standard_normal(places.shape)  # k-means needs distinct places
    with warnings.catch_warnings(action="ignore"):  # a group may end up empty
        runs = [kmeans2(places, k, minit="++", rng=np.random.default_rng(start)) for start in range(STARTS)]
    spreads = [float(((places - centres[named]) ** 2).sum()) for centres, named in runs]
    named = np.unique(runs[int(np.argmin(spreads))][1], return_inverse=True)[1]
    return named.astype(np.int64), np.sort(root**2)[::-1].copy()


def _largest(table: sparse.csr_array, mean: float, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues in size, with their vectors, of the reports less their mean, without a dense array."""
    n = table.shape[0]
    if n <= max(DENSE, 2 * k):
        values, vectors = np.linalg.eigh(table.toarray() - mean * (1 - np.eye(n)))
        largest = np.argsort(-np.abs(values))[:k]
        return values[largest], vectors[:, largest]

    def times(x: FloatArray) -> FloatArray:
        column = x.ravel()
        return np.asarray(table @ column - mean * (column.sum() - column))

    start = np.random.default_rng(0).standard_normal(n)
    try:
        values, vectors = eigsh(
            LinearOperator((n, n), matvec=times, dtype=np.float64), k=k, which="LM", v0=start, tol=1e-4
        )
    except ArpackNoConvergence as stopped:  # eigenvalues that stand out converge first
        values, vectors = np.real(stopped.eigenvalues), np.real(stopped.eigenvectors)
    return values, vectors
