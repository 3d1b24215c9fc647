"""Mistakes about the estimation of networks and about online learning."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import integrate, special

from cloakwork._checks import FloatArray
from papers.errata.erratum import AT_LEAST, AT_MOST, EQUAL, erratum
from papers.experiment import Run, stream
from papers.perturbations import component_regrets, in_random_frames, laplace_ensemble
from papers.rows import Mean, Row

ROUNDS = 200
DRAWS, QUICK_DRAWS, PROBE_DRAWS = 400_000, 40_000, 2_000


def graphons(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """Worked out, not measured."""
    del run, key
    for rho in (0.01, 0.001):
        yield _divergence(rho)
    yield from _norms()
    yield _contiguity()


def _divergence(rho: float) -> Row:
    """Lemma 5.2 for one pair of nodes, at the probabilities that (5.9) gives them.

    The lemma sums over ordered pairs, so an edge has 16 (p - q)^2.
    """
    c = 0.1
    p, q = rho * (0.5 + c), rho * (0.5 - c)
    true = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    return erratum(
        "McMillan, Lemma 5.2 in (5.10)",
        "D <= 8 n^2 ||W - W'||^2, used where W is not within [1/4, 3/4]",
        f"divergence of one edge, rho = {rho:g}, between rho/2 +- {c:g} rho",
        (AT_MOST, 16 * (p - q) ** 2, true),
        "too small by about 1/rho; the theorem still holds",
    )


def _norms() -> Iterator[Row]:
    """The largest that the left sides can be, with H and its estimate in [0, 1], against what they are said to be."""
    n, k, rho = 1000, 10, 0.1
    dense = math.sqrt(k**2 / n**2 + math.log(k) / n)
    sparse = min(math.sqrt(rho * (k**2 / n**2 + math.log(k) / n)), rho)
    for where, right, largest in (("(4.13)", dense, 1.0), ("(4.14)", sparse, rho)):
        yield erratum(
            f"McMillan, {where}",
            "E ||M^ - H||_2 / n^2 is of the order of sqrt(k^2/n^2 + log k/n)",
            f"largest possible ||M^ - H||_2 / n^2, n = {n}, k = {k}, entries up to {largest:g}",
            (AT_LEAST, right, largest * n / n**2),
            "correct with ||M^ - H||_2^2 / n^2 and without the root",
        )


def _contiguity() -> Row:
    """The left side of the last row of Table 5.1 as printed, and (k - 1) d lambda^2 (Banks et al.), for a/n and b/n."""
    k, n, a, b = 10, 1000, 9.0, 1.0
    p, q = a / n, b / n
    degree, ratio = (a + (k - 1) * b) / k, (a - b) / (a + (k - 1) * b)
    return erratum(
        "McMillan, Table 5.1, row 3",
        "n^2 (p-q)^2 (k-1)/(p + (k+1) q) <= 2 log(k-1): k groups cannot be found",
        f"left side, k = {k}, a = {a:g}, b = {b:g}, n = {n}; the right side is {2 * math.log(k - 1):.2f}",
        (EQUAL, n**2 * (p - q) ** 2 * (k - 1) / (p + (k + 1) * q), (k - 1) * degree * ratio**2),
        "n (p-q)^2 (k-1)/(k (p + (k-1) q)) is meant; as printed it grows with n and never holds",
    )


def learning(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """Follow the leader as printed, one-sided noise, and matrices of noise."""
    draws = run.choose(DRAWS, QUICK_DRAWS, PROBE_DRAWS)
    yield from _follow()
    yield from _gumbel(draws, stream(*key, 0))
    yield _weibull()
    yield from _ensemble()
    yield _independent(draws, stream(*key, 1))
    yield _compression(stream(*key, 2))
    for number, size in enumerate(run.choose((10, 20), (10,), (4,))):
        yield _one_direction(size, run.choose(100, 60, 8), stream(*key, 3, number))


def _follow() -> Iterator[Row]:
    """On [-1, 1] against -0.5, 1, -1, 1, ...: who loses, and what knowing the next loss is worth."""
    losses = np.concatenate([[-0.5], np.tile([1.0, -1.0], ROUNDS // 2)])[:ROUNDS]
    before = np.concatenate([[0.0], np.cumsum(losses)[:-1]])
    least = -abs(float(losses.sum()))
    printed = np.concatenate([[0.0], np.tile([-1.0, 1.0], ROUNDS // 2)])[:ROUNDS]
    yield erratum(
        "McMillan, section 12.1",
        "against -0.5, 1, -1, ... the leader plays 0, -1, 1, ... and has regret T",
        f"regret of these plays over {ROUNDS} rounds",
        (EQUAL, float(ROUNDS), float(printed @ losses) - least),
        f"the signs are flipped: the leader plays 0, 1, -1, ... with regret {-np.sign(before) @ losses - least:.0f}",
    )
    ahead = -np.sign(np.cumsum(losses))
    late = np.concatenate([[0.0], ahead[:-1]])  # x_{t+1} = argmin <x, L_t>, as printed
    yield erratum(
        "McMillan, section 12.2",
        "x_{t+1} = argmin <x, L_t> knows the next loss and has no regret without noise",
        f"its regret over {ROUNDS} rounds",
        (AT_MOST, 0.0, float(late @ losses) - least),
        f"indices are off by one: x_t = argmin <x, L_t> has {float(ahead @ losses) - least:.0f}",
    )


def _gumbel(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """argmin(L + Z) against argmax(-L + Z) = softmax(-L)."""
    losses = np.array([0.0, 1.0, 3.0])
    noise = rng.gumbel(size=(draws, 3))
    softmax = float(special.softmax(-losses)[2])
    share = float((np.argmin(losses + noise, axis=1) == 2).mean())
    right = float((np.argmax(-losses + noise, axis=1) == 2).mean())
    yield erratum(
        "McMillan, Theorem 13.1",
        "argmin(L + Z) and argmax(-L + Z) are the same rule",
        "probability of the worst of three experts, losses 0, 1, 3, Gumbel noise: softmax(-L) and argmin(L + Z)",
        (EQUAL, softmax, Mean(share, math.sqrt(share * (1 - share) / draws))),
        f"only argmax(-L + Z) gives softmax(-L): {right:.4f} measured",
    )
    experts = 10
    yield erratum(
        "McMillan, Corollary 13.6",
        "a hazard rate of at most 1 makes argmin(L + Z) 1-private in one step",
        f"largest log ratio between two steps, Gumbel noise, {experts} experts",
        (AT_MOST, 1.0, max(_step(gap, experts) for gap in (0.0, 3.0, 8.0))),
        f"it tends to N - 1 = {experts - 1} as the gap grows; for argmax(-L + Z) it is 1",
    )


def _weibull() -> Row:
    """The hazard rate k z^(k - 1) of shape k: no scale bounds it, at 0 for k < 1 and far out for k > 1."""
    shape, near = 0.5, 6e-6
    return erratum(
        "McMillan, Theorem 13.1, proof",
        "all listed noises, Weibull too, have a hazard rate of at most epsilon",
        f"hazard rate of Weibull noise of shape {shape:g} and scale 1 at {near:g}, epsilon = 1",
        (AT_MOST, 1.0, shape * near ** (shape - 1)),
        "it is unbounded at 0, whatever the scale; only shape 1, exponential noise, has a bounded one",
    )


def _step(gap: float, experts: int) -> float:
    """Logarithm of P(first is least) with a loss of `gap` more than the others, over that with one of gap + 1 more."""

    def chance(more: float) -> float:
        def both(z: float) -> float:
            return math.exp(-z - math.exp(-z)) * (-math.expm1(-math.exp(-z - more))) ** (experts - 1)

        found, _ = integrate.quad(both, -6.0, 40.0, epsabs=0.0, epsrel=1e-9, limit=400)
        return float(found)

    return math.log(chance(gap) / chance(gap + 1))


def _ensemble() -> Iterator[Row]:
    """p(Z) ~ exp(-||lambda(Z)||_1): two by two by integration, and what that means for a large matrix."""
    size = 2
    norm = _moment(1) / _moment(0)
    yield erratum(
        "McMillan, Lemma 12.6",
        "the eigenvalues are independent Laplace variables",
        f"E ||Z||_* of the {size} x {size} ensemble, epsilon = 1",
        (EQUAL, float(size), norm),
        f"eigenvalues repel each other: it is N(N+1)/2 = {size * (size + 1) / 2:g}",
    )
    large = 50
    yield erratum(
        "McMillan, Lemma 12.6",
        "the k largest eigenvalues sum to at most k (log(N/k) + 1)/eps on average",
        f"least possible E lambda_max, N = {large}, k = 1, epsilon = 1",
        (AT_MOST, math.log(large) + 1, large * (large + 1) / 2 / 2 / large),
        "half of E ||Z||_* is positive and shared by at most N; Corollary 12.7, which rests on it, fails too",
    )


def _moment(power: int) -> float:
    """Integral of (|x| + |y|)^power |x - y| exp(-|x| - |y|) over the half plane x > y."""

    def weighed(y: float, x: float) -> float:
        size = abs(x) + abs(y)
        return math.pow(size, power) * (x - y) * math.exp(-size)

    across, _ = integrate.dblquad(weighed, 0.0, 60.0, -60.0, 0.0)
    beside, _ = integrate.dblquad(weighed, 0.0, 60.0, 0.0, lambda x: x)
    return float(across + 2 * beside)


def _independent(draws: int, rng: np.random.Generator) -> Row:
    """Independent Laplace eigenvalues in a random frame: delta at epsilon = 1 between 0 and a matrix a a'.

    The density of such a matrix is exp(-||lambda||_1) / |lambda_1 - lambda_2|, times a constant.
    """
    values = rng.laplace(size=(draws, 2))
    angle = rng.uniform(0.0, math.pi, draws)
    c, s = np.cos(angle), np.sin(angle)
    a = values[:, 0] * c**2 + values[:, 1] * s**2
    d = values[:, 0] * s**2 + values[:, 1] * c**2
    b = (values[:, 0] - values[:, 1]) * c * s
    loss = _log_density(a, b, d) - _log_density(a + 1.0, b, d)
    excess = np.maximum(-np.expm1(1.0 - loss), 0.0)
    return erratum(
        "McMillan, Lemmas 12.5 and 12.6",
        "the noise is epsilon-private and its eigenvalues are independent Laplace variables",
        "delta at epsilon = 1 with such eigenvalues, 2 x 2 matrices that differ by a a'",
        (AT_MOST, 0.0, Mean.of(excess)),
        "its density is unbounded near equal eigenvalues",
    )


def _log_density(a: FloatArray, b: FloatArray, d: FloatArray) -> FloatArray:
    """Of matrices [[a, b], [b, d]], up to a constant."""
    middle, half = (a + d) / 2, np.hypot((a - d) / 2, b)
    return np.asarray(-np.abs(middle + half) - np.abs(middle - half) - np.log(2 * half))


def _compression(rng: np.random.Generator) -> Row:
    """What projecting onto the data itself loses."""
    x = rng.normal(size=4)
    x /= np.linalg.norm(x)
    projector = np.outer(x, x)
    return erratum(
        "McMillan, section 12.2.2",
        "the loss ||X x - x||^2 may be replaced by x' X x",
        "loss of the projection onto x itself",
        (EQUAL, round(float(x @ projector @ x), 9), round(float(np.linalg.norm(projector @ x - x) ** 2), 9)),
        "correct is x' (I - X) x: the printed loss rewards the worst subspace",
    )


def _one_direction(size: int, draws: int, rng: np.random.Generator) -> Row:
    """Online PCA with k = 1 where all points are the same, x_t = e_1: the best projection loses nothing, so eps = 1."""
    x = np.zeros((ROUNDS, size))
    x[:, 0] = 1.0
    values = laplace_ensemble(size, draws, 120, rng)[:, -1]
    regrets = component_regrets(x, 1, in_random_frames(values, rng))
    return erratum(
        "McMillan, Corollary 12.7",
        "regret of order sqrt(L* k log(N/k)) + k log(N/k), here with the constants of Theorem 12.3",
        f"regret of {ROUNDS} rounds of x_t = e_1, N = {size}, k = 1, so L* = 0",
        (AT_MOST, 3 * (1 + math.log(size)), Mean.of(regrets)),
        "it grows faster than N; Lemma 12.6 in its proof is wrong",
    )
