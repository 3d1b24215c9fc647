"""The posterior of a few point sources on a network whose matrix is not formed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import Graph
from cloakwork.recovery.estimator import FrameSolution, Status
from cloakwork.recovery.goodness_of_fit import Misfit
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.vicinity import Source, position

SETTLING, SWEEPS = 4, 20  # of each of two chains
ROUGH = 1e-8  # error of overlaps, which are kept in single precision
SHARPENED = 16  # nodes at most whose norms are computed one by one


@dataclass(frozen=True, eq=False)
class NetworkSources:
    """Up to `most` sources of the known weight `strength` on the nodes of a large network.

    Notes
    -----
    With whitened readings b and columns C_v, a placement p has the log likelihood sum_p (C_v'b - ||C_v||^2 / 2) less
    the sum of C_u'C_v over its pairs. One adjoint gives all C_v'b. The norms ||C_v||^2 are computed near each node, or
    estimated by random readings where hubs spread heat far; an estimate moves weights a little and no claim depends on
    it. One source is weighed on all nodes. For several, each of `most` slots is empty or holds a node, and is drawn in
    turn from its exact distribution over all nodes given the other slots. The prior is uniform over counts and nodes.
    """

    problem: Problem
    graph: Graph
    strength: float
    least: int
    most: int
    level: float

    @classmethod
    def of(cls, problem: Problem, strength: object, least: int, most: int, level: float) -> "NetworkSources":
        """Check that the problem is one that this can solve."""
        if not isinstance(problem.physics, Graph) or problem.offsets is not None:
            raise InputError("a network this large is recovered without drift: leave drift out.", drift=True)
        if isinstance(strength, bool) or not isinstance(strength, int | float):
            raise InputError(
                f"strength={strength!r}: a network with more than 4 million pairs of nodes and sensors needs one known "
                "strength, such as 1.0.",
                strength=strength,
            )
        return cls(problem, problem.physics, float(strength), least, most, level)

    @cached_property
    def _weights(self) -> FloatArray:
        return 1 / self.problem.effective_sigma

    @cached_property
    def half_squares(self) -> FloatArray:
        """Half the squared norm of each column of a source, shape (n,)."""
        sigma = self.problem.effective_sigma
        weights = None if (sigma == sigma[0]).all() else self._weights
        norms = self.graph.column_norms(weights) * (self._weights[0] if weights is None else 1.0)
        return np.asarray((self.strength * norms) ** 2 / 2)

    def solve(self, readings: FloatArray, rng: np.random.Generator) -> FrameSolution:
        """The posterior of one frame, shape (m,).

        Its gap is half the l1 distance between the expected numbers of two independent chains, 0 if all was weighed.
        """
        alone = self.strength * self.graph.adjoint(readings * self._weights**2) - self.half_squares
        frame = _Frame(self, alone)
        frame.sharpen()
        if self.most == 1:
            chains = [frame.chain([], rng, settling=0, sweeps=1)]
        else:
            starts: tuple[list[int], ...] = ([], frame.settled(None))
            chains = [frame.chain(start, rng, settling=SETTLING, sweeps=SWEEPS) for start in starts]
        counts, intensity = (np.asarray(np.mean(each, axis=0)) for each in zip(*chains, strict=True))
        gap = float(np.abs(chains[0][1] - chains[-1][1]).sum()) / 2
        sources = frame.listed(frame.settled(int(counts.argmax())))
        explained = np.zeros(self.graph.places)
        for source in sources:
            explained[source.place] += self.strength
        rest = (readings - self.graph.apply(explained)) * self._weights
        misfit = Misfit(rest, rest, len(rest) - len(sources), float(rest @ rest), len(rest), len(sources))
        status = (Status.WEIGHED if self.most == 1 else Status.SAMPLED) if sources else Status.NOBODY
        return FrameSolution(explained, status, gap, sources, misfit.fit(), counts, intensity)

    @cached_property
    def _squared(self) -> Callable[[FloatArray], FloatArray]:
        """Applies exp(-2 tau L); kept, because it holds the edges in the form that compiled code reads."""
        kernel = self.graph.kernel.at(2 * self.graph.tau)
        return (kernel if kernel.rational else kernel.rougher(ROUGH)).apply

    def overlap(self, place: int) -> FloatArray:
        """C_u'C_v of a source at `place` with one at each node, shape (n,)."""
        unit = np.zeros(self.graph.places)
        unit[place] = self.strength
        if self.problem.weights is None and self.graph.fades:  # then M'M = gain^2 exp(-2 tau L)
            factor = self.strength * (self.graph.gain * self._weights[0]) ** 2
            return np.asarray(factor * self._squared(unit))
        return self.strength * self.graph.adjoint(self.graph.apply(unit) * self._weights**2)


@dataclass(frozen=True, eq=False)
class _Frame:
    """The log weights of a lone source on each node, and the overlaps that were needed so far."""

    model: NetworkSources
    alone: FloatArray
    _overlaps: dict[int, FloatArray] = field(default_factory=dict, init=False)

    def overlap(self, place: int) -> FloatArray:
        if place not in self._overlaps:
            self._overlaps[place] = self.model.overlap(place).astype(np.float32)
            self.alone[place] += self.model.half_squares[place] - float(self._overlaps[place][place]) / 2
            self.model.half_squares[place] = float(self._overlaps[place][place]) / 2  # exact from now on
        return self._overlaps[place]

    def sharpen(self) -> None:
        """Compute the norms of the likeliest nodes one by one, where an error of a few percent would matter."""
        for _ in range(SHARPENED if self.model.half_squares.max() > 1 else 0):
            best = int(self.alone.argmax())
            if best in self._overlaps:
                break
            self.overlap(best)

    def beside(self, others: list[int]) -> tuple[FloatArray, float]:
        """Probability of each node for a source beside others, shape (n,), and how much likelier the readings are.

        That is the logarithm of the average over nodes.
        """
        logs = self.alone.copy()
        for other in others:
            logs -= self.overlap(other)
        top = float(logs.max())
        weights = np.exp(logs - top)
        return weights / weights.sum(), float(np.log(weights.mean()) + top)

    def given(self, others: list[int]) -> tuple[FloatArray, float]:
        """Probability of each node for one slot given the nodes of the others, shape (n,), and that it is empty."""
        k, (weights, gain) = len(others), self.beside(others)
        odds = (k + 1) / (self.model.most - k) if k >= self.model.least else np.inf  # all counts are as likely
        there = float(special.expit(gain + np.log(odds)))
        return there * weights, 1 - there

    def chain(
        self, start: list[int], rng: np.random.Generator, *, settling: int, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Draw each slot in turn; averages what is known of it given the others: counts, and intensity."""
        most = self.model.most
        slots: list[int | None] = [*start, *[None] * (most - len(start))]
        counts, intensity = np.zeros(most + 1), np.zeros(len(self.alone))
        for sweep in range(settling + sweeps):
            for slot in range(most):
                others = [at for k, at in enumerate(slots) if at is not None and k != slot]
                if len(others) + 1 < self.model.least:  # only while the chain fills up
                    slots[slot] = int(self.alone.argmax())
                    continue
                weights, empty = self.given(others)
                if sweep >= settling:
                    counts[len(others)] += empty
                    counts[len(others) + 1] += 1 - empty
                    intensity += weights
                drawn = rng.random() * (1 - 1e-15)
                node = int(np.searchsorted(np.cumsum(weights), drawn - empty))
                slots[slot] = None if drawn < empty else min(node, len(weights) - 1)
        return counts / counts.sum(), intensity / sweeps

    def settled(self, count: int | None) -> list[int]:
        """A likely placement: the best node after the other, then each moved to its best given the others.

        Without a `count`, while another source is more likely than none.
        """
        places: list[int] = []
        for _ in range(self.model.most if count is None else count):
            weights, gain = self.beside(places)
            if count is None and gain < 0 and len(places) >= self.model.least:
                break
            places.append(int(weights.argmax()))
        for _ in range(2 if len(places) > 1 else 0):
            for k in range(len(places)):
                others = places[:k] + places[k + 1 :]
                places[k] = int(self.beside(others)[0].argmax())
        return places

    def listed(self, places: list[int]) -> tuple[Source, ...]:
        """Each source of a placement, with the nodes where it may be instead while the others stay."""
        space, sources = self.model.graph.space, []
        for k, place in enumerate(places):
            weights, gain = self.beside(places[:k] + places[k + 1 :])
            order = np.argsort(-weights)
            held = np.sort(order[: int(np.searchsorted(np.cumsum(weights[order]), self.model.level)) + 1])
            distances = space.distances(place)[held]
            at = position(space.places[place], place, space)
            sources.append(
                Source(place, at, self.model.strength, float(distances.max()), held, float(special.expit(gain)))
            )
        return tuple(sources)
