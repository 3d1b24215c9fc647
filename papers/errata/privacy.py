"""Mistakes about how much noise hides a move, about noise in a computer, and about private convolution."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork.physics import Graph
from cloakwork.privacy import Profile, Scope, largest_mu, sensitivity
from cloakwork.series import WindowSum
from papers.calibration import paper_mu
from papers.conditioning import condition_of, sensitivity_of
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, erratum
from papers.experiment import Run, stream
from papers.filters import DELTA, EPSILON, papers_mse
from papers.rows import Mean, Row
from papers.trials import Setting

USUAL = ((1.0, 0.1), (4.0, 0.1), (10.0, 0.01), (1.0, 1e-6), (0.1, 1e-8))
DRAWS, QUICK_DRAWS, PROBE_DRAWS = 200_000, 20_000, 2_000
LENGTH = 64
_CONVOLUTION = "Fawaz, Muthukrishnan and Nikolov"


def privacy(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """Mistakes about how much noise hides a move, and about noise in a computer."""
    yield from _formula()
    yield _scope()
    yield _least()
    yield from _wide()
    yield _edge()
    yield _floats(run.choose(DRAWS, QUICK_DRAWS, PROBE_DRAWS), key)


def _formula() -> Iterator[Row]:
    """The formula sigma = 2 ln(1.25/delta) Delta / epsilon, both ways."""
    for claim in USUAL:
        yield erratum(
            "Gilbert and McMillan, Lemma 4",
            "sigma = 2 ln(1.25/delta) Delta/epsilon",
            f"sigma/Delta that ({claim[0]:g}, {claim[1]:g}) needs",
            (AT_MOST, 1 / paper_mu(*claim), 1 / largest_mu(*claim)),
            "unnecessary noise",
        )
    for epsilon, delta in ((8.0, 0.5), (25.0, 0.2), (50.0, 0.1), (150.0, 0.01)):
        yield erratum(
            "Gilbert and McMillan, Lemma 4",
            "private for all epsilon > 0",
            f"delta at epsilon = {epsilon:g}",
            (AT_MOST, delta, Profile(epsilon / (2 * math.log(1.25 / delta))).delta(epsilon)),
            f"less privacy than claimed, from epsilon = {_breaks_at(delta):.1f} on",
        )


def _breaks_at(delta: float) -> float:
    """The epsilon above which the formula gives more than delta."""
    low, high, scale = 1.0, 1000.0, 2 * math.log(1.25 / delta)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if Profile(middle / scale).delta(middle) <= delta else (low, middle)
    return low


def _scope() -> Row:
    return erratum(
        "Gilbert and McMillan, section 1.3",
        "privacy is required of each reading alone, but noise is calibrated for all readings together",
        "Delta of one reading on the line",
        (AT_MOST, sensitivity(Setting().line, alpha=0.01), sensitivity(Setting().line, alpha=0.01, scope=Scope.SENSOR)),
        "these are two different claims; both are useful",
    )


def _least() -> Row:
    rho = 1e-3
    uneven = np.diag([1.0, rho, rho])
    return erratum(
        "Gilbert and McMillan, Lemma 6, proof",
        "Delta/alpha = min over neighbours of ||M_i - M_j||",
        f"Delta of diag(1, {rho:g}, {rho:g}), kappa = {condition_of(uneven):.0f}",
        (EQUAL, float(np.linalg.norm(np.diff(uneven, axis=1), axis=0).min()), sensitivity_of(uneven)),
        "an ill-conditioned matrix can hide nothing",
    )


def _wide() -> Iterator[Row]:
    """The proof replaces the columns by their neighbours, which lowers the rank only if m >= n."""
    x = np.linspace(0.0, 1.0, 400)
    smooth = np.array([np.ones_like(x), x, x**2])
    for name, values in (("[1 1]/sqrt 2", np.ones((1, 2))), ("3 smooth sensors, 1, x and x^2, at 400 places", smooth)):
        scaled = values / np.linalg.norm(values, 2)
        yield erratum(
            "Gilbert and McMillan, first version, Lemma 5; abstract",
            "Delta >= 1/(kappa sqrt n) if ||M|| = 1",
            f"Delta of {name}",
            (AT_LEAST, 1 / (condition_of(scaled) * math.sqrt(values.shape[1])), sensitivity_of(scaled)),
            "needs at least as many sensors as places",
        )


def _edge() -> Row:
    """Lemma 18 with its exponent set right, on a graph where one edge says nothing about another.

    Two nodes of the clique differ only in eigenvectors of one eigenvalue, n - 1, that is n - 3 times there: whichever
    eigenvectors are chosen, the sum for them is at most e^(-tau (n - 1)) sqrt(2 (n - 3)).
    """
    n, tau = 10, 0.5
    weights = np.ones((n, n)) - np.eye(n)
    weights[-1, 1:] = weights[1:, -1] = 0.0  # a clique, and a last node that only the first knows
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=0)) - weights)
    i, j = np.nonzero(np.triu(weights))
    bounds = np.abs(vectors[i] - vectors[j])[:, 1:] @ np.exp(-tau * values[1:])
    return erratum(
        "Gilbert and McMillan, Lemma 18",
        "Delta <= sum_k e^(-tau s) |U_ik - U_jk|, for unspecified i and j",
        f"Delta of a clique of {n - 1} nodes and one node that only the first knows, with an edge of the clique",
        (AT_MOST, math.exp(-tau * (n - 1)) * math.sqrt(2 * (n - 3)), Graph(weights, tau=tau).moves().steepest().value),
        f"a maximum over edges is missing; with it the bound is {float(bounds.max()):.5f}",
    )


def _floats(draws: int, key: tuple[int, ...]) -> Row:
    """Releases 0 + z in floating point that no z could have made from 1.

    Whatever the generator, fl(1 + z) is y only for the floats z next to y - 1.
    """
    epsilon, delta = 1.0, 0.1
    y = stream(*key, 0).normal(0.0, 1 / largest_mu(epsilon, delta), draws)
    near = y - 1.0
    candidates = (near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf))
    possible = np.any([1.0 + z == y for z in candidates], axis=0)
    return erratum(
        "Gilbert and McMillan, Proposition 5",
        "readings and noise are real numbers",
        f"share of float releases that prove x was not 1, at ({epsilon:g}, {delta:g})",
        (AT_MOST, delta, Mean.share(int((~possible).sum()) / draws, draws)),
        "floating-point noise leaks; integer noise does not",
        assumed=True,
    )


def convolution(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """Worked out, not measured."""
    del run, key
    yield _spectrum()
    yield _circulant()
    yield _harmonic()
    yield from _running()
    yield _windows()


def _spectrum() -> Row:
    """Algorithm 1 prints h^ = F x: with that, the noise and the answer depend on the secret alone."""
    h = np.zeros(LENGTH)
    h[:4] = 0.25
    one = np.zeros(LENGTH)
    one[0] = 1.0
    filtered, secret = (np.fft.fft(values, norm="ortho") for values in (h, one))
    answers = [np.fft.ifft(math.sqrt(LENGTH) * spectrum * secret, norm="ortho").real for spectrum in (secret, filtered)]
    return erratum(
        f"{_CONVOLUTION}, Algorithm 1",
        "h^ = F x",
        f"first value of h * x without noise, h a mean over 4 of {LENGTH} values, x one event",
        (EQUAL, float(answers[0][0]), float(answers[1][0])),
        "correct is h^ = F h: the printed formula convolves x with itself",
    )


def _circulant() -> Row:
    """The printed matrix on a filter that fades, after one event."""
    n = 8
    h, one = 0.5 ** np.arange(n), np.eye(n)[0]
    i, j = np.indices((n, n))
    printed, right = h[(n + j - i) % n] @ one, np.fft.ifft(np.fft.fft(h) * np.fft.fft(one)).real
    return erratum(
        f"{_CONVOLUTION}, section 1",
        "H = (h_{N+j-i}) is the matrix of the convolution",
        f"largest difference between H x and h * x, h = 1, 1/2, 1/4, ..., N = {n}, x one event",
        (EQUAL, 0.0, float(np.abs(printed - right).max())),
        "it is the transpose, and correlates: the answers come before their events",
    )


def _harmonic() -> Row:
    """The first line of (4), and the bound at its end with its constants."""
    n = 256
    h = np.zeros(n)
    h[:8] = 1 / 8
    sizes = np.sort(np.abs(np.fft.fft(h, norm="ortho")))[::-1]
    k = np.arange(1, n + 1)
    shape = float((k**2 * sizes**2).max()) / (n * math.log2(n) ** 2)
    bound = float((1 / k).sum()) * math.sqrt(n * shape) * math.log2(n)
    return erratum(
        f"{_CONVOLUTION}, (4)",
        "||h^||_1 = sum |h^_{i-1}| / i",
        f"||h^||_1 of a mean over 8 of {n} values",
        (EQUAL, float((sizes / k).sum()), float(sizes.sum())),
        f"a factor i is missing; the bound that follows holds: {sizes.sum():.2f} <= {bound:.2f}",
    )


def _running() -> Iterator[Row]:
    """Coefficients of N ones and N zeros, by a unitary transform of 2N points."""
    few, many = (np.sort(np.abs(np.fft.fft(np.repeat([1.0, 0.0], n), norm="ortho")))[::-1] for n in (256, 1024))
    yield erratum(
        f"{_CONVOLUTION}, section 5.1",
        "h^_1 = sqrt N",
        "largest coefficient of running sums, N = 1024",
        (EQUAL, 32.0, float(many[0])),
        "it is sqrt(N/2): the transform has 2N points",
    )
    yield erratum(
        f"{_CONVOLUTION}, section 5.1",
        "h^_i = O(N^(-1/2)) for i > 1",
        "growth of the second largest coefficient from N = 256 to N = 1024",
        (AT_MOST, 0.5, float(many[1] / few[1])),
        f"it is about sqrt(2N)/pi, here {many[1]:.2f}: the cause of the wrong O(1)",
    )


def _windows() -> Row:
    """The papers' error of sums over the last w values, for two widths."""
    n, narrow, wide = 4096, 1, 1024
    errors = [papers_mse(WindowSum(width), n, EPSILON, DELTA) for width in (narrow, wide)]
    return erratum(
        f"{_CONVOLUTION}, section 1, related work",
        "window sums have a constant squared error per query",
        f"mean squared error of sums over {wide:,} values over that of {narrow}, N = {n:,}",
        (EQUAL, 1.0, errors[1] / errors[0]),
        f"it grows with the window: {errors[0]:.0f} and {errors[1]:.0f} at ({EPSILON:g}, {DELTA:g})",
    )
