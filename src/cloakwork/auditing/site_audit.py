"""Audit all devices of a site together in one run: who moved, in frames in which the auditor knows the answer.

Each frame the auditor tosses a coin, gives the devices readings as if a source stood at one of two places, and guesses
which one from what they publish. The claim limits how often such guesses are right, whatever was learnt from earlier
frames. One guess a frame finds too little noise, and noise that devices share, which an audit of single devices cannot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray, as_number, count, frames, instance_of, rounded_down
from cloakwork.auditing.audit import NEVER_PROOF, Verdict
from cloakwork.errors import InputError
from cloakwork.privacy import Cloak, Profile

Devices = Callable[[FloatArray], ArrayLike]

_SHIFTS = np.array([0.5, 2.0])  # standard deviations between the two answers, if the noise is as planned
_PLACES, _PAIRS = 128, 64  # places that sources stand at; pairs of them to choose from in each frame
_CLEAR = 0.1  # of the largest shift by a move: others need sources too strong to be read
_LEARNT = 16  # frames between two looks at the noise so far
_PRIOR = 20.0  # frames that the plan counts for, besides those seen
_SHARED = 0.5  # correlation that a suspect has at least
_NAMED = 6  # suspects that are named
_RESEMBLING = 1.2  # times the largest correlation of noise by chance
_LEAST = 1e-5  # of the variance of any sum of noise, in parts of what independent noise would have
_FACTORS = np.array([1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0])
_CHANCES = np.array([0.65, 0.75, 0.8, 0.86, 0.9, 0.94, 0.97, 0.99, 0.999])  # of a right guess, which the bets are on


@dataclass(frozen=True, kw_only=True)
class SiteAudit:
    """The outcome of an audit of a whole site.

    `right` of `frames` guesses were right, where at most `allowed` are expected. `factor_lower` is how many times
    further apart two answers are than the plan says, at least: 2 where all noise has half its size. `epsilon_lower` is
    the epsilon of a window that follows; `suspects` are the sensors whose noise is far too small, or shared.

    Notes
    -----
    A violation is announced falsely with probability at most 1 - confidence, whenever the audit stopped.
    """

    verdict: Verdict
    frames: int
    right: int
    allowed: float
    factor_lower: float
    epsilon: float
    delta: float
    epsilon_lower: float
    confidence: float
    suspects: tuple[int, ...]

    def __str__(self) -> str:
        found = self.verdict is Verdict.VIOLATION
        lines = [
            self.verdict.value.capitalize(),
            f"claim: epsilon {self.epsilon:g}, delta {self.delta:g}; confidence {100 * self.confidence:g} %",
            f"{self.right} of {self.frames} guesses were right; the claim allows {self.allowed:.0f} on average",
        ]
        if found:
            lines += [f"epsilon is at least {rounded_down(self.epsilon_lower)}"]
        if found and self.suspects:
            more = f" and {len(self.suspects) - _NAMED} more" if len(self.suspects) > _NAMED else ""
            lines += [f"noise of sensors {', '.join(map(str, self.suspects[:_NAMED]))}{more} (from 0) stands out"]
        return "\n".join([*lines, NEVER_PROOF])


class _NoiseSoFar:
    """What the frames so far say of the noise: its size at each sensor, and which sensors share it."""

    def __init__(self, sensors: int) -> None:
        self._seen = list[FloatArray]()
        self.variances = np.ones(sensors)
        self._correlations = self._inverse = np.eye(sensors)

    def add(self, noise: FloatArray) -> None:
        """Take the noise of one frame, in standard deviations of the plan."""
        self._seen.append(noise)
        number = len(self._seen)
        if number % _LEARNT:
            return
        seen = np.array(self._seen)
        self.variances = ((seen**2).sum(axis=0) + _PRIOR) / (number + _PRIOR)
        size = np.linalg.norm(seen, axis=0)
        alike = seen.T @ seen / np.outer(size, size)
        chance = _RESEMBLING * math.sqrt(4 * math.log(max(seen.shape[1], 2)) / number)
        self._correlations = np.where(np.abs(alike) > chance, alike, 0.0)
        np.fill_diagonal(self._correlations, 1.0)
        sizes, vectors = np.linalg.eigh(self._correlations)
        self._inverse = (vectors / np.maximum(sizes, _LEAST)) @ vectors.T

    def weighed(self, shifts: FloatArray) -> FloatArray:
        """Return S^-1 d for each row d of `shifts`, S the covariance of the noise."""
        deviations = np.sqrt(self.variances)
        return np.asarray(shifts / deviations @ self._inverse / deviations)

    @property
    def suspects(self) -> tuple[int, ...]:
        """Sensors that share their noise, or have far too little."""
        little = self.variances < 1 - 4 * math.sqrt(2 / (len(self._seen) + _PRIOR))
        shared = (np.abs(self._correlations) > _SHARED).sum(axis=0) > 1
        return tuple(np.flatnonzero(little | shared).tolist())


class _Bets:
    """Wealth from betting that more guesses are right than a claim allows, for each chance and factor on the claim."""

    def __init__(self, confidence: float) -> None:
        self._wealth = np.zeros((len(_CHANCES), len(_FACTORS)))  # logarithms
        self._enough = math.log(len(_CHANCES)) - math.log1p(-confidence)  # over all chances together
        self.beyond = np.zeros(len(_FACTORS), dtype=bool)

    def settle(self, limit: FloatArray, *, right: bool) -> None:
        """Settle the bets on a guess that is right with probability `limit` (factors,) at most."""
        chances = _CHANCES[:, None]
        odds = chances / limit if right else (1 - chances) / (1 - limit)
        self._wealth += np.where(chances > limit, np.log(odds), 0.0)
        self.beyond |= special.logsumexp(self._wealth, axis=0) > self._enough


def audit_site(
    cloak: Cloak,
    devices: Devices,
    *,
    max_frames: int = 480,
    confidence: float = 0.99,
    rng: np.random.Generator | None = None,
) -> SiteAudit:
    """Audit the promise of all sensors of a site together, with one guess a frame; it ends when it has seen enough.

    Parameters
    ----------
    cloak
        The plan: Gaussian noise, and an observer of all sensors.
    devices
        Takes the true readings of one frame, shape (m,), and returns what the devices publish.
    max_frames
        A night has 480 at one frame a minute.
    confidence
        Of a violation, and of its epsilon.
    rng
        For coins and places; seeded by the operating system by default.

    Notes
    -----
    The plan says that two maps whose readings differ by D are apart by mu = |D / sigma| + |r / sigma| at most, r the
    steps that readings are rounded to. Then any guess is right with probability Phi(mu / 2) at most, given all earlier
    frames. The strength of the source decides on mu; what tells most is tried. A bet on a chance q > p = Phi(c mu / 2)
    multiplies its stake by q / p if the guess is right and by (1 - q) / (1 - p) if not, which is no gain on average
    while the noise keeps the claim up to a factor c. So wealth beyond 1 / (1 - confidence) is that unlikely (Ville's
    inequality). This audits a Gaussian trade-off function in one run (compare Steinke, Nasr and Jagielski).

    Examples
    --------
    >>> import numpy as np
    >>> from cloakwork import Cloak, HeatLine
    >>> cloak = Cloak(HeatLine(n=100, m=50, T=0.05), epsilon=1.0, delta=1e-6, alpha=0.01)
    >>> rng = np.random.default_rng(1)
    >>> honest = audit_site(cloak, lambda readings: cloak.simulate(readings, rng=rng), max_frames=64, rng=rng)
    >>> print(honest.verdict)
    no violation found
    >>> quiet = lambda readings: (readings + cloak.simulate(readings, rng=rng)) / 2
    >>> print(audit_site(cloak, quiet, rng=rng).verdict)
    violation
    """
    instance_of("cloak", cloak, Cloak, "the plan's cloak")
    most, confidence = count("max_frames", max_frames), as_number("confidence", confidence)
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence:g}: give a number between 0 and 1, such as 0.99.")
    if cloak.observers > 1 or not isinstance(cloak.profile, Profile):
        raise InputError(
            "only Gaussian noise against an observer of all sensors is audited as a site; audit each sensor."
        )
    generator = np.random.default_rng() if rng is None else rng
    columns = _columns(cloak, generator)
    learnt, bets = _NoiseSoFar(len(cloak.sigmas)), _Bets(confidence)
    rounding = float(np.linalg.norm(cloak.roundings / cloak.sigmas))
    number, right, allowed = 0, 0, 0.0
    while number < most and not bets.beyond[0]:
        number += 1
        pair, strength, shift = _move(columns, learnt, generator, explore=number % 4 == 0)
        answer = int(generator.integers(2))
        readings = strength * columns[pair] * cloak.sigmas
        hardware = 0.0 if cloak.noise_floor is None else generator.normal(size=len(cloak.sigmas)) * cloak.noise_floor
        published = frames("devices", devices(readings[answer] + hardware), len(cloak.sigmas)).reshape(-1)
        noise = (published - readings) / cloak.sigmas  # under each answer
        weight = learnt.weighed(noise[0] - noise[1])
        guess = int((noise[0] + noise[1]) @ weight > 0)  # nearer to the readings of place 1
        limit = special.ndtr(_FACTORS * (shift + rounding) / 2)
        bets.settle(limit, right=guess == answer)
        right, allowed = right + (guess == answer), allowed + float(limit[0])
        learnt.add(noise[answer])
    violated = bool(bets.beyond[0])
    factor = float(_FACTORS[np.flatnonzero(bets.beyond).max()]) if violated else 0.0
    window = factor * cloak.profile.mu
    return SiteAudit(
        verdict=Verdict.VIOLATION if violated else Verdict.NONE_FOUND,
        frames=number,
        right=right,
        allowed=allowed,
        factor_lower=factor,
        epsilon=cloak.epsilon,
        delta=cloak.delta,
        epsilon_lower=Profile(window).epsilon(cloak.delta) if factor else 0.0,
        confidence=confidence,
        suspects=learnt.suspects if violated else (),
    )


def _columns(cloak: Cloak, rng: np.random.Generator) -> FloatArray:
    """Return the readings of a unit source at places that sensors see, in standard deviations."""
    physics = cloak.physics
    places = rng.permutation(len(physics.space))[:_PLACES]
    unit, columns = np.zeros(len(physics.space)), np.empty((len(places), physics.sensors))
    for row, place in zip(columns, places, strict=True):
        unit[place] = 1.0
        row[:] = physics.apply(unit) / cloak.sigmas
        unit[place] = 0.0
    return columns


def _move(
    columns: FloatArray, learnt: _NoiseSoFar, rng: np.random.Generator, *, explore: bool
) -> tuple[IntArray, float, float]:
    """Choose two places that the noise so far hides least, how strong the source is, and how far apart that is."""
    pairs = rng.integers(len(columns), size=(_PAIRS, 2))
    shifts = columns[pairs[:, 0]] - columns[pairs[:, 1]]
    sizes = np.linalg.norm(shifts, axis=1)
    if not sizes.max() > 0:
        raise InputError("no sensor sees a source at any place: there is nothing to guess.")
    clear = np.flatnonzero(sizes > _CLEAR * sizes.max())
    shown = shifts[clear] / sizes[clear, None]
    closer = np.sqrt((shown * learnt.weighed(shown)).sum(axis=1))
    best = int(rng.integers(len(clear))) if explore else int(np.argmax(closer))
    planned, expected = special.ndtr(_SHIFTS / 2), np.minimum(special.ndtr(_SHIFTS * closer[best] / 2), _CHANCES[-1])
    shift = float(_SHIFTS[np.argmax(special.rel_entr(expected, planned) + special.rel_entr(1 - expected, 1 - planned))])
    return pairs[clear[best]], shift / float(sizes[clear[best]]), shift
