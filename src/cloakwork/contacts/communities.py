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

from cloakwork._checks import FloatArray, IntArray, count, positive, read_only, short_repr, whole_numbers
from cloakwork.contacts.contact_pairs import checked_network, flip_of_bits
from cloakwork.errors import InputError
from cloakwork.privacy import Flip, share_limits

CONFIDENCE = 0.95  # of limits
FALSE_ALARMS = 0.01  # share of networks without groups in which some may be found
DENSE = 200  # people up to whom all eigenvalues are computed
STARTS = 8
BOTH_ENDS = 6  # further eigenvalues that reach the positive end of the spectrum
REFINEMENTS, SETTLED = 30, 1e-3  # steps of the refinement, and a change of a membership that ends it


@final
@dataclass(frozen=True, eq=False)
class Communities:
    """Groups of people, and how much the groups meet.

    `labels` is the group of each person (n,); all are 0 if no group stands out from the noise, and `findable` is False.
    `densities` (k, k) is the estimated probability that members of two groups meet, with standard `errors` and 95 %
    `limits` (k, k, 2). For labels that were given, densities are unbiased and may lie outside [0, 1]; labels that were
    found shift them. `snr` is the signal to noise of each direction that stands out, largest first; empty if the labels
    were given.

    >>> from cloakwork.contacts import Blocks, simulate_contacts
    >>> rng, flip = np.random.default_rng(1), Flip(epsilon=3.0, readings_per_window=1)
    >>> office = Blocks([[0.3, 0.01], [0.01, 0.3]]).sample(100, rng=rng)
    >>> found = communities(simulate_contacts(office.met, flip, rng=rng), labels=office.labels, flip=flip)
    >>> found.densities.round(1).tolist()
    [[0.3, 0.0], [0.0, 0.3]]
    """

    labels: IntArray
    densities: FloatArray
    errors: FloatArray
    limits: FloatArray
    snr: FloatArray
    findable: bool

    __repr__ = short_repr

    @property
    def status(self) -> str:
        """The result in a sentence."""
        if not self.findable:
            return "No group stands out from the noise: see plan_communities for the people and the epsilon needed."
        strength = ", ".join(f"{value:.2f}" for value in self.snr)
        return f"{len(self.densities)} groups{f' with signal to noise {strength}' if strength else ', as given'}."

    def __str__(self) -> str:
        return self.status


def communities(
    flipped: Any,
    *,
    flip: Flip,
    k: int | None = None,
    labels: ArrayLike | None = None,
    false_alarms: float = FALSE_ALARMS,
) -> Communities:
    """Find k groups of people from flipped contacts, or take known groups, and estimate how much they meet.

    Parameters
    ----------
    flipped
        The reports: a symmetric array (n, n) of 0 and 1, dense or sparse, as `simulate_contacts` returns.
    flip
        How the devices flipped.
    k, labels
        How many groups to look for; or the known group of each person, whole numbers from 0 without gaps.
    false_alarms
        How often groups may be found where there are none. 1 always finds some.

    Notes
    -----
    Without groups, the eigenvalues of the reports less their mean end near 2 sqrt(n v), for a variance v of a report.
    Those beyond `noise_edge`, of the k largest in size, give each person coordinates of equal noise. k-means groups
    people by them, cut to a limited range because a few people with many ones may lie far out, into one group more than
    there are directions. People then move to the groups that make their reports likeliest (expectation and
    maximisation). While there are fewer than k groups, the one in which some direction stands out most is split.
    A density is (share of ones - lie)/(truth - lie), for the rates of ones without and with a contact.

    >>> from cloakwork.contacts import Blocks, simulate_contacts
    >>> rng, flip = np.random.default_rng(1), Flip(epsilon=3.0, readings_per_window=1)
    >>> office = Blocks([[0.05, 0.001], [0.001, 0.05]]).sample(500, rng=rng)
    >>> found = communities(simulate_contacts(office.met, flip, rng=rng), k=2, flip=flip)
    >>> right = float(np.mean(found.labels == office.labels))
    >>> found.findable, max(right, 1 - right) > 0.9
    (True, True)
    """
    table, flip = checked_network("flipped", flipped), flip_of_bits(flip)
    n = table.shape[0]
    _refuse_other_flip(table.nnz / 2, n * (n - 1) / 2, flip)
    if k is not None and labels is None:
        groups, snr = _find(table, count("k", k, minimum=2), positive("false_alarms", false_alarms))
    elif k is None and labels is not None:
        groups, snr = whole_numbers("labels", labels, n), np.empty(0)
        if groups.min() < 0 or groups.max() >= n or not np.bincount(groups).all():
            raise InputError("labels: number the groups from 0 without gaps.")
    else:
        raise InputError("give either k, how many groups to look for, or labels, the groups if they are known.")
    ones, pairs = _counts(table, groups)
    share, gap = ones / np.maximum(pairs, 1), flip.truth - flip.other
    alone = pairs == 0  # one person has no pairs, and any density is possible
    error = np.where(alone, np.inf, np.sqrt(share * (1 - share) / np.maximum(pairs, 1)) / gap)
    limits = np.clip((share_limits(ones, pairs, CONFIDENCE) - flip.other) / gap, 0.0, 1.0)
    densities = np.where(alone, 0.5, (share - flip.other) / gap)
    findable = labels is not None or len(snr) > 0
    return Communities(
        read_only(groups), read_only(densities), read_only(error), read_only(limits), read_only(snr), findable
    )


def noise_edge(n: int, mean: float, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the eigenvalue, in units of sqrt(n v), that reports with this mean and without groups rarely exceed.

    2 + 1/d + 2/d^2 + c n^(-2/3), for the mean number d of ones of a person and a quantile c of the distribution of
    Tracy and Widom, which is close to a shifted gamma distribution (Chiani). A spectrum has two ends.
    """
    rare = float(special.gammainccinv(46.446, min(false_alarms, 1.0) / 2)) * 0.186054 - 9.84801
    return float(2 + 1 / (n * mean) + 2 / (n * mean) ** 2 + rare * n ** (-2 / 3))


def _refuse_other_flip(ones: float, pairs: float, flip: Flip) -> None:
    """Refuse reports with fewer ones than if no one had met, or more than if all had: another flip made them."""
    for rate, beyond in ((flip.other, flip.other * pairs - ones), (flip.truth, ones - flip.truth * pairs)):
        if beyond > 6 * math.sqrt(rate * (1 - rate) * pairs) + 12:  # by chance below e^-18 (Bernstein)
            raise InputError(
                f"{100 * ones / pairs:.3g} % of the reports are ones, and flip gives {100 * flip.other:.3g} to "
                f"{100 * flip.truth:.3g} %: give the flip that the devices used.",
                share=ones / pairs,
                lie=flip.other,
                truth=flip.truth,
            )


def _counts(table: sparse.csr_array, groups: IntArray) -> tuple[FloatArray, FloatArray]:
    """Count the ones and the pairs within and between groups, shape (k, k) each."""
    sizes = np.bincount(groups).astype(np.float64)
    member = sparse.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    ones, pairs = (member.T @ table @ member).toarray(), np.outer(sizes, sizes) - np.diag(sizes)
    for counts in (ones, pairs):
        np.fill_diagonal(counts, counts.diagonal() / 2)
    return ones, pairs


def _find(table: sparse.csr_array, k: int, false_alarms: float) -> tuple[IntArray, FloatArray]:
    """Return labels from 0 without gaps, and the signal to noise of the directions that stand out."""
    n = table.shape[0]
    if k > n:
        raise InputError(f"k={k}: there are {n} people. Give at most {n} groups.", k=k, n=n)
    mean, table = table.nnz / (n * (n - 1)), table.astype(np.float64)
    if not 0 < mean < 1:
        return np.zeros(n, dtype=np.int64), np.empty(0)
    sizes, vectors = _directions(table, mean, k)
    shown = np.abs(sizes) > noise_edge(n, mean, false_alarms if false_alarms < 1 else FALSE_ALARMS)
    stands_out = bool(shown.any())
    if not stands_out:
        if false_alarms < 1:
            return np.zeros(n, dtype=np.int64), np.empty(0)
        sizes, vectors = _directions(table, mean, min(k + BOTH_ENDS, n))
        shown = sizes >= sizes.max()  # the best guess: people meet within groups
    size = np.maximum(np.abs(sizes[shown]), 2.0)
    root = (size + np.sqrt(size**2 - 4)) / 2  # a signal of root^2 moves an eigenvalue to root + 1/root
    places = vectors[:, shown] * root * math.sqrt(n)
    places = places + 1e-9 * np.random.default_rng(0).standard_normal(places.shape)  # k-means needs distinct places
    first = min(k, len(root) + 1) if stands_out else k
    best = _nearest(np.tanh(places), first)
    if stands_out:  # otherwise a refinement would fit the noise
        best = _refined(table, best)
        for _ in range(first, k):
            best = _refined(table, _split(table, best))
    return np.unique(best, return_inverse=True)[1].astype(np.int64), np.sort(root**2)[::-1].copy()


def _directions(table: sparse.csr_array, mean: float, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the k eigenvalues of the centred reports that are largest in size, in units of the noise, with vectors."""
    n = table.shape[0]
    noise = math.sqrt(n * mean * (1 - mean))
    if n <= max(DENSE, 2 * k):
        values, vectors = np.linalg.eigh(table.toarray() - mean * (1 - np.eye(n)))
        largest = np.argsort(-np.abs(values))[:k]
        return values[largest] / noise, vectors[:, largest]

    def times(x: FloatArray) -> FloatArray:
        return np.asarray(table @ x.ravel() - mean * (x.sum() - x.ravel()))

    centred = LinearOperator((n, n), matvec=times, dtype=np.float64)
    try:
        values, vectors = eigsh(centred, k=k, v0=np.random.default_rng(0).standard_normal(n), tol=1e-4)
    except ArpackNoConvergence as stopped:  # eigenvalues that stand out converge first
        values, vectors = np.real(stopped.eigenvalues), np.real(stopped.eigenvectors)
    return values / noise, vectors


def _nearest(places: FloatArray, k: int) -> IntArray:
    """Return labels by the best of some runs of k-means."""
    with warnings.catch_warnings(action="ignore"):  # a group may end up empty
        runs = [kmeans2(places, k, minit="++", rng=np.random.default_rng(start)) for start in range(STARTS)]
    spreads = [float(((places - centres[labels]) ** 2).sum()) for centres, labels in runs]
    return np.asarray(runs[int(np.argmin(spreads))][1], dtype=np.int64)


def _refined(table: sparse.csr_array, labels: IntArray) -> IntArray:
    """Move people to the groups that make their reports likeliest, with the densities of the groups so far."""
    member = np.eye(labels.max() + 1)[labels]
    for _ in range(REFINEMENTS):
        sizes, ones = member.sum(axis=0), table @ member
        pairs = np.maximum(np.outer(sizes, sizes) - member.T @ member, 0.0)
        rates = (member.T @ ones + 0.5) / (pairs + 1)
        rest = np.maximum(sizes - member - ones, 0.0)
        logs = ones @ np.log(rates).T + rest @ np.log1p(-rates).T + np.log(np.maximum(sizes, 1e-9))
        before, member = member, np.asarray(special.softmax(logs, axis=1))
        if np.abs(member - before).max() < SETTLED:
            break
    return np.unique(member.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def _split(table: sparse.csr_array, labels: IntArray) -> IntArray:
    """Split the group whose own reports have an eigenvalue farthest beyond the noise, by the signs of its vector."""
    most, split = -math.inf, labels
    for group in range(labels.max() + 1):
        members = np.flatnonzero(labels == group)
        n, part = len(members), table[members][:, members]
        mean = part.nnz / max(n * (n - 1), 1)
        if 0 < mean < 1:
            sizes, vectors = _directions(part, mean, 1)
            if abs(sizes[0]) - noise_edge(n, mean) > most:
                most, split = abs(sizes[0]) - noise_edge(n, mean), labels.copy()
                split[members[vectors[:, 0] > 0]] = labels.max() + 1
    return split
