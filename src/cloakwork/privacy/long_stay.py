"""Long stays: an offset of each sensor that changes slowly, so that a source that stays is not found by averaging.

Beside fresh noise, a device adds an offset that it renews every few readings: the old one times `carry`, plus a draw.
Averaging many readings removes the fresh noise and leaves the offset.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import optimize

from cloakwork._checks import FloatArray, IntArray, count, positive, read_only
from cloakwork.errors import CalibrationError
from cloakwork.physics import Nuisance
from cloakwork.privacy.calibration import Allowance
from cloakwork.privacy.claim import allowed_mu
from cloakwork.privacy.gaussian import check_claim
from cloakwork.privacy.noise_table import DEVICE_TABLES, SERVER_TABLES, NoiseTable, noise_table, table_ratio
from cloakwork.privacy.sampler import WordSource, noise_of_frames
from cloakwork.sensor import CARRY_BITS, LARGEST_RENEWAL, OFFSET_PARTS, renewed, whole_steps

MARGIN = 1e-3  # of the information of a stay, for which offsets outside it count as known
FARTHEST = 9  # times the readings of a stay: how far outside offsets may be known, and how long its warmth may linger
WHOLE = 1 + 1 / (2 * OFFSET_PARTS)  # steps by which whole steps of an offset may move more or less than the offset
RENEWED = 2.0  # parts of a step by which roundings may shift a draw
_CARRIES = np.unique(np.rint((1 - np.geomspace(2e-4, 0.9, 48)) * 2**CARRY_BITS)).astype(int)
_PER_STAY = 512  # renewals, at least, if there are that many readings
_SPENT = (0.01, 0.03, 0.1, 0.3)  # shares of the fresh noise that may go into covering the steps of the hardware
_ENDS = 5  # a stay that begins between two renewals tells up to a quarter of what its first block does
_ROUNDED = 1 + 2.0**-20
_SHARES = (math.log(1e-9), math.log(1e6))  # of the variance of an offset in that of fresh noise


@dataclass(frozen=True)
class Stay:
    """A second claim, for a source that stays where it is for up to `readings` consecutive frames.

    Parameters
    ----------
    readings
        The most frames of a stay.
    epsilon, delta
        The claim for all frames that anyone keeps, of the stay and before and after it.
    period
        Seconds between two frames, by which trackers know how fast the offsets change.
    offsets
        Slow offsets to use instead of the calibrated ones; refused if they miss the claim.

    >>> from cloakwork.physics import FloorPlan, Rooms, Steady
    >>> from cloakwork.privacy import Cloak
    >>> flat = FloorPlan(Rooms.from_walls((4, 3), cell=0.5), [(1, 1), (3, 2)], Steady(reach=1.0))
    >>> eight_hours = Stay(readings=480, epsilon=4.0, delta=1e-5, period=60.0)
    >>> Cloak(flat, epsilon=2.0, delta=1e-5, alpha=0.1, stay=eight_hours).stay.readings
    480
    """

    readings: int
    epsilon: float
    delta: float
    period: float = 1.0
    offsets: "SlowNoise | None" = None

    def __post_init__(self) -> None:
        count("readings", self.readings, error=CalibrationError)
        check_claim(self.epsilon, self.delta)
        positive("period", self.period, unit=" seconds", error=CalibrationError)


@dataclass(frozen=True, eq=False)
class SlowNoise:
    """The offsets of a network: every `renew` readings, offset <- carry offset / 2^16 + draw.

    Offsets count in 256ths of a step. `ratios` (m,) are the standard deviations of the draws in that unit.
    """

    carry: int
    renew: int
    ratios: FloatArray

    def __post_init__(self) -> None:
        whole = isinstance(self.carry, int) and isinstance(self.renew, int)
        if not (whole and 0 < self.carry < 2**CARRY_BITS and 1 <= self.renew <= LARGEST_RENEWAL):
            raise CalibrationError(
                f"carry={self.carry}, renew={self.renew}: give whole numbers, carry from 1 to {2**CARRY_BITS - 1} and "
                f"renew from 1 to {LARGEST_RENEWAL}.",
                carry=self.carry,
                renew=self.renew,
            )
        if not ((self.ratios > 0).all() and (self.ratios <= DEVICE_TABLES.ratio).all()):
            raise CalibrationError(
                f"the offset of a sensor is too large for the noise tables, which go up to {DEVICE_TABLES.ratio:,.0f}. "
                "Give a coarser step, or a coarser resolution.",
                ratio=float(self.ratios.max()),
            )

    @property
    def fade(self) -> float:
        """The share of an offset that is left after one renewal."""
        return float(self.carry / 2**CARRY_BITS)

    def deviations(self, steps: FloatArray) -> FloatArray:
        """Return the standard deviation of each sensor's offset, in the unit of the readings, shape (m,)."""
        return np.asarray(steps * self.ratios / (OFFSET_PARTS * math.sqrt(1 - self.fade**2)))

    def information(self, sigma: FloatArray, steps: FloatArray) -> "Information":
        """Return what readings with this fresh noise (m,) tell of a stay, by the sensor that tells most."""
        share = float((self.deviations(steps) / sigma).min()) ** 2
        return Information(share, self.fade, self.renew)

    def nuisance(self, steps: FloatArray, period: float) -> Nuisance:
        """Return the offsets as recovery takes them: one of each sensor, which fades over time."""
        deviations = self.deviations(steps)
        over = -self.renew * period / math.log(self.fade)
        return Nuisance(np.eye(len(steps)), deviations, np.full(len(steps), over))

    def tables(self) -> list[NoiseTable]:
        return [noise_table(ratio) for ratio in self.ratios.tolist()]

    def start_table(self, sensor: int) -> NoiseTable:
        """Return the table of the first offset of a sensor, which has the distribution of all later ones."""
        ratio = float(self.ratios[sensor]) / math.sqrt(1 - self.fade**2)
        return noise_table(table_ratio(ratio), size=SERVER_TABLES)


class OffsetWalk:
    """The offsets of all sensors, frame after frame, from random words."""

    def __init__(self, slow: SlowNoise, words: WordSource) -> None:
        self._slow, self._words = slow, words
        self._tables = slow.tables()
        starts = [slow.start_table(sensor) for sensor in range(len(self._tables))]
        self._offsets = noise_of_frames(starts, 1, words)[0]
        self._frame = 0

    def steps(self, frames: int) -> IntArray:
        """Return the offsets of the next frames in whole steps, shape (frames, m)."""
        out = np.empty((frames, len(self._offsets)), dtype=np.int64)
        for row in out:
            if self._frame % self._slow.renew == 0:
                drawn = noise_of_frames(self._tables, 1, self._words)[0]
                self._offsets = renewed(self._offsets, drawn, self._slow.carry)
            row[:] = whole_steps(self._offsets)
            self._frame += 1
        return out


@dataclass(frozen=True)
class Information:
    """How much fresh noise with slow offsets tells about a stay, in readings with fresh noise alone.

    `share` is the variance of an offset over that of the fresh noise of a reading, `fade` what a renewal leaves of an
    offset, and `renew` the readings from one renewal to the next.

    Notes
    -----
    Let x_t be 1 in the frames of the stay and 0 in all others, K the correlation of the offsets, and w_b the number of
    frames of the stay between two renewals. Then

        x' (I + share K)^-1 x  =  sum_b w_b - w' G w,      G = (renew I + (share K_b)^-1)^-1,

    with K_b the correlation between renewals. Its inverse has three diagonals, so over an endless past and future
    G_ij = g lambda^|i-j|. `docs/science/stays.md` shows that the most revealing stay of at most n frames is found
    among those with as many full blocks as fit between any two ends.
    """

    share: float
    fade: float
    renew: int

    @cached_property
    def _kernel(self) -> tuple[float, float]:
        """The g and the lambda of the notes."""
        beside = self.fade / (self.share * (1 - self.fade**2))
        middle = self.renew + (1 + self.fade**2) / (self.share * (1 - self.fade**2))
        root = math.sqrt((middle - 2 * beside) * (middle + 2 * beside))
        return 1 / root, 2 * beside / (middle + root)

    def of(self, readings: int) -> float:
        """Return the most that any stay of at most so many frames tells, with all frames around it at hand."""
        g, fall = self._kernel
        size = self.renew
        first, last = np.meshgrid(np.arange(size + 1.0), np.arange(size + 1.0))
        whole = np.floor((readings - first - last) / size)
        first, last, whole = (values[whole >= 0] for values in (first, last, whole))
        left = fall**whole
        beyond = fall * (1 - left) / (1 - fall)
        inside = whole + 2 * fall / (1 - fall) * (whole - (1 - left) / (1 - fall))
        ends = first**2 + last**2 + 2 * first * last * fall * left + 2 * (first + last) * size * beyond
        told = first + last + whole * size - g * (ends + size**2 * inside)
        return float(told.max()) * (1 + 1e-9) + 1e-13 * readings

    def known_outside(self, readings: int) -> tuple[float, float]:
        """Return the same if offsets some renewals before and after are known, and how many frames that leaves.

        In these frames a hidden stay changes the offset that explains what was sent, so rounding may change too.
        """
        g, fall = self._kernel
        told = self.of(readings)
        most = 2 * g * (self.renew / (1 - fall)) ** 2
        blocks = max(1, math.ceil(math.log(min(1.0, MARGIN * told / most)) / (2 * math.log(fall))))
        return told + most * fall ** (2 * blocks), float(readings + 2 * self.renew * blocks)

    def renewals(self, frames: float) -> float:
        """Return the most renewals that a hidden stay changes: the one after its blocks leads back."""
        return frames / self.renew + 1


@dataclass(frozen=True, eq=False)
class StayCost:
    """The cost of stays for a network with fresh noise `sigma` (m,) and steps (m,), whose frames meet an allowance.

    `rounding` (m,) is what the steps of hardware and of sending can add to a shift.

    Notes
    -----
    In rooms that remember, heat of each age shifts as many consecutive readings as the stay has, by the same amount, so
    the mu of a stay is at most the sum over the ages: that of a frame, times the root of the information. Only the
    frames in which rounding counts become more (`lingering`).
    """

    allowance: Allowance
    sigma: FloatArray
    steps: FloatArray
    rounding: FloatArray

    @classmethod
    def each(cls, allowance: Allowance, sigma: FloatArray, steps: FloatArray) -> "tuple[StayCost, ...]":
        """Upper bounds, all of them valid: without a noise floor, and with a share of the fresh noise for its help.

        Notes
        -----
        With a noise floor g, hardware reports h = q round((x + g) / q). Split the fresh noise into N(0, t) and the
        rest. Whatever the offset shifts a reading by, the quantiles of h + N(0, t) then differ by at most the shift
        that is left plus (V - 1) q (`NoiseFloor.wobble`), and the rest of the noise hides that, in place of a whole
        step q.
        """
        rounding = allowance.covered(sigma)
        costs = [cls(allowance, sigma, steps, rounding)]
        own = allowance.own
        if own is not None and own.helps.any():
            for share in _SPENT:
                left = rounding - own.resolution + own.wobble(share * sigma**2)
                costs.append(cls(allowance, sigma * math.sqrt(1 - share), steps, left))
        return tuple(costs)

    def mu(self, slow: SlowNoise, readings: int) -> float:
        """Return the mu of a stay of up to so many frames, rounded up."""
        return self._mu(slow.information(self.sigma, self.steps), slow.ratios, readings)

    def _mu(self, information: Information, ratios: FloatArray, readings: int) -> float:
        """The mu of the stay, of the rounding in each frame, and of that in each renewal, added up."""
        told, frames = information.known_outside(readings)
        frames += lingering(self.allowance) * readings
        total = self._moved * math.sqrt(told) + self.rounded * math.sqrt(frames)
        return (total + self.allowance.claim.joint(RENEWED / ratios) * math.sqrt(information.renewals(frames))) * (
            1 + 1e-9
        )

    def _ratios(self, information: Information) -> FloatArray:
        """The deviations of the draws that give offsets this share of the fresh noise."""
        kept = information.share * (1 - information.fade**2)
        return np.asarray(OFFSET_PARTS * self.sigma / self.steps * math.sqrt(kept))

    @cached_property
    def _moved(self) -> float:
        return self.allowance.cost(self.sigma, np.zeros_like(self.sigma))

    @cached_property
    def rounded(self) -> float:
        """The mu of the rounding in one frame."""
        return self.allowance.claim.joint((self.rounding + WHOLE * self.steps) * _ROUNDED / self.sigma)

    def least(self, readings: int, allowed: float) -> SlowNoise | None:
        """Return the slow noise of the least variance with which a stay has at most `allowed`; None if none does."""
        often = min(readings / _PER_STAY, (allowed / self._moved) ** 2 / _ENDS, LARGEST_RENEWAL)
        renew = 2 ** max(0, math.floor(math.log2(often)))
        found = [
            (share, carry)
            for carry in _CARRIES.tolist()
            if (share := self._least_share(carry / 2**CARRY_BITS, renew, readings, allowed * (1 - 1e-6))) is not None
        ]
        if not found:
            return None
        share, carry = min(found, key=lambda pair: pair[0])
        draws = self._ratios(Information(share, carry / 2**CARRY_BITS, renew))
        if draws.max() > DEVICE_TABLES.ratio:
            return None  # another bound may need smaller offsets
        return SlowNoise(carry, renew, read_only(np.array([table_ratio(ratio) for ratio in draws])))

    def _least_share(self, fade: float, renew: int, readings: int, allowed: float) -> float | None:
        def excess(log_share: float) -> float:
            information = Information(math.exp(log_share), fade, renew)
            if information.known_outside(readings)[1] > (1 + FARTHEST) * readings + 2 * renew:
                return 1.0
            return math.log(self._mu(information, self._ratios(information), readings) / allowed)

        if excess(_SHARES[1]) > 0:
            return None
        if excess(_SHARES[0]) <= 0:
            return math.exp(_SHARES[0])
        found = float(optimize.brentq(excess, *_SHARES, xtol=1e-7))
        return math.exp(found if excess(found) <= 0 else found + 2e-7)


def lingering(allowance: Allowance) -> int:
    """Return for how long after a stay rounding may still hide less of its warmth, in times of the stay."""
    return FARTHEST if allowance.family.tolerance.memory else 0


def fresh_stay_mu(allowance: Allowance, sigma: FloatArray, readings: int) -> float:
    """Return the mu of a stay of up to so many frames against fresh noise alone, with all frames around it at hand."""
    return allowance.frame_mu(sigma, rounded=math.sqrt(1 + lingering(allowance))) * math.sqrt(readings)


def stay_mus(
    allowance: Allowance, sigma: FloatArray, steps: FloatArray, slow: SlowNoise | None, readings: int
) -> list[float]:
    """Return bounds on the mu of a stay: the first without a noise floor; infinite without offsets."""
    if slow is None:
        return [math.inf]
    return [cost.mu(slow, readings) for cost in StayCost.each(allowance, sigma, steps)]


def slow_noise(allowance: Allowance, sigma: FloatArray, steps: FloatArray, stay: Stay) -> SlowNoise:
    """Return the offsets that a stay needs beside fresh noise, or its own if they are enough."""
    family, n = allowance.family, stay.readings
    if family.physics.pulse:
        raise CalibrationError("stay: a pulse fades, so its readings do not stay the same. Leave stay out.", stay=stay)
    if n < (window := allowance.claim.readings):
        raise CalibrationError(
            f"a stay of {n} frames is shorter than a window of {window}. Give a longer stay; the claim for a window "
            "covers shorter ones.",
            readings=n,
            window=window,
        )
    draws = 2 * (FARTHEST + 2 + lingering(allowance)) * n * allowance.claim.seen(allowance.sensors)
    allowed = allowed_mu(stay.epsilon, stay.delta, draws=draws + 4 * LARGEST_RENEWAL, doubt=family.doubt)
    costs = StayCost.each(allowance, sigma, steps)
    if stay.offsets is not None:
        mu = min(cost.mu(stay.offsets, n) for cost in costs)
        if mu <= allowed:
            return stay.offsets
        raise CalibrationError(
            f"these offsets give mu={mu:.6g} for a stay of {n:,} frames, and epsilon={stay.epsilon:g}, "
            f"delta={stay.delta:g} allow {allowed:.6g}: leave offsets out.",
            mu=mu,
            allowed=allowed,
        )
    found = [slow for cost in costs if (slow := cost.least(n, allowed)) is not None]
    if not found:
        raise _unhidden(stay, min(cost.rounded for cost in costs) * math.sqrt(n), allowed)
    return min(found, key=lambda slow: float(np.log(slow.deviations(steps)).sum()))


def _unhidden(stay: Stay, roundings: float, allowed: float) -> CalibrationError:
    """Say why no offset hides a stay, and what would help; `roundings` is the mu that all steps take."""
    finer = math.ceil(2 * roundings / allowed)
    remedy = (
        f"The steps of hardware and sending, in the worst case, alone give mu={roundings:.3g}. Give a resolution at "
        f"least {finer} times finer, a noise_floor of half a step or more if the sensors have it, or leave stay out."
        if finer > 1
        else "Its ends alone tell more, or its offsets are too large for the noise tables. Give a larger epsilon or a "
        "shorter stay."
    )
    return CalibrationError(
        f"no offset hides a stay of {stay.readings:,} frames at epsilon={stay.epsilon:g}, delta={stay.delta:g}, which "
        f"allow mu={allowed:.3g}. {remedy}",
        readings=stay.readings,
        epsilon=stay.epsilon,
        delta=stay.delta,
        steps=roundings,
        allowed=allowed,
    )
