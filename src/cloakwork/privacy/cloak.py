"""The cloak: a privacy claim, the noise that meets it, and the release."""

import math
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import (
    FloatArray,
    IntArray,
    frames,
    instance_of,
    member_of,
    per_sensor,
    read_only,
    scalar_or_array,
)
from cloakwork.errors import CalibrationError, ReadingError
from cloakwork.physics import Nuisance, Physics
from cloakwork.privacy.calibration import Allowance, NoiseLevels, refuse_nothing_to_hide, sensitivity
from cloakwork.privacy.claim import Assumptions, Claim, Scope
from cloakwork.privacy.design import Design, DesignReport, report, stated_design
from cloakwork.privacy.distribution import NoiseLaw
from cloakwork.privacy.gaussian import Profile
from cloakwork.privacy.guarantee import Explanation, Guarantee
from cloakwork.privacy.hardware import Hardware, warn_if_rounded
from cloakwork.privacy.laplace import LaplaceProfile
from cloakwork.privacy.ledger import Immutable, Ledger
from cloakwork.privacy.long_stay import OffsetWalk, Stay, fresh_stay_mu, slow_noise, stay_mus
from cloakwork.privacy.noise_table import DEVICE_TABLES, table_ratio
from cloakwork.privacy.sampler import WordSource, frames_in_steps, noise_of_frames, private_words, simulated_words


@final
class Cloak(Immutable):
    """Noise that hides every move of up to `alpha`, and the releases that it covers.

    Parameters
    ----------
    physics
        How sources become readings.
    epsilon, delta
        The claim, for a whole window of `readings_per_window` frames.
    alpha
        Distance within which a unit source is hidden, in units of the space.
    scope
        Whom the source is hidden from: an observer of all sensors (`network`) or of one (`sensor`).
    noise
        Its law: `gaussian`, or for scope `sensor` also `laplace`, which allows a delta of 0.
    readings_per_window
        Frames that (epsilon, delta) covers together. Several frames may see one pulse at different times after its
        emission, so the claim then covers the model's time and every later one.
    sigma
        Noise to use instead of the calibrated noise, one for all or one per sensor; refused if it misses the claim.
    design
        How noise differs between sensors: `equal` (the default), or `least-error` for the noise that locates a lone
        source best at the same guarantee. Not together with `sigma`.
    hardware
        The steps in which sensors read and send, and their noise floor.
    stay
        A second claim, for sources that stay: beside fresh noise, each sensor then has an offset that changes slowly.
    assumptions
        What the claim assumes about the model, the clocks and the baseline, and recovery about the error of the map.

    Attributes
    ----------
    sigmas, steps, ratios
        Of each sensor, shape (m,): the standard deviation of its noise, the step in which it sends, and the first over
        the second, rounded up, which is the ratio of its noise table.
    roundings
        The sum of the steps of the hardware and of sending, which the noise covers, shape (m,).
    frame_mu
        The largest shift of one frame by a hidden move, in standard deviations.

    Notes
    -----
    A reading is rounded to k steps and sent as k + round(N(0, (sigma/step)^2)). This equals round(k + N), so it is
    post-processing of the Gaussian mechanism. Each rounding, by the hardware and to steps, adds at most its own step to
    the difference between neighbours, so the calibrated sensitivity is Delta + (resolution + step) sqrt(m).

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> cloak = Cloak(HeatLine(n=100, m=50, T=0.05), epsilon=1.0, delta=1e-6, alpha=0.01)
    >>> round(cloak.sensitivity, 6), round(cloak.sigma, 4)
    (0.135897, 0.5799)
    """

    def __init__(
        self,
        physics: Physics,
        *,
        epsilon: float,
        delta: float,
        alpha: float,
        readings_per_window: int = 1,
        scope: Scope | str = Scope.NETWORK,
        noise: NoiseLaw | str = NoiseLaw.GAUSSIAN,
        design: Design | str = Design.EQUAL,
        hardware: Hardware | None = None,
        stay: Stay | None = None,
        assumptions: Assumptions | None = None,
        sigma: ArrayLike | None = None,
    ) -> None:
        self.noise = member_of("noise", noise, NoiseLaw, error=CalibrationError)
        self.physics, self.distribution = physics, self.noise.distribution
        self.claim = claim = Claim(epsilon, delta, alpha, readings_per_window, scope)  # type: ignore[arg-type]
        self.epsilon, self.delta, self.alpha = float(epsilon), float(delta), float(alpha)
        self.scope, self.readings_per_window = claim.scope, claim.readings
        hardware, assumed = hardware or Hardware(), assumptions or Assumptions()
        instance_of("hardware", hardware, Hardware, "an object such as Hardware(resolution=0.0625)")
        example = "an object such as Assumptions(tolerance=Tolerance(gain=0.05))"
        self.family = instance_of("assumptions", assumed, Assumptions, example).family(physics, claim.readings)
        self._map_errors = per_sensor(
            "map_error", assumed.map_error, physics.sensors, zero=True, error=CalibrationError
        )
        self.sensitivity = sensitivity(self.family, alpha=self.alpha, scope=self.scope)
        refuse_nothing_to_hide(physics, self.sensitivity / self.alpha)
        self.design = stated_design(design, sigma)
        steps, doubt = hardware.on(physics.sensors), self.family.doubt
        beside = {"noise_floor": steps.floor is not None, "a stay": stay is not None}
        self.distribution.refuse_unknown(claim, beside | {"a network too large for its matrix": doubt > 0})
        mu, finer = self.distribution.frame_mu(claim, physics.sensors, doubt), 1.0
        if stay is not None:
            instance_of("stay", stay, Stay, "the claim for sources that stay as a Stay")
            finer = math.sqrt(max(1.0, stay.readings / claim.readings))
        self.allowance = Allowance(self.family, claim, mu, self.sensitivity, steps, finer, assumed.drift)
        levels = self._levels(sigma)
        self.sigmas, self.roundings = read_only(levels.sigma), read_only(levels.rounding)
        self.steps = self.roundings if steps.sent is None else steps.sent
        self.frame_mu = self.allowance.frame_mu(self.sigmas)
        self.allowance.refuse_too_little(self.sigmas)
        ratios, which = np.unique(self.sigmas / self.steps, return_inverse=True)
        self.ratios = read_only(np.array([table_ratio(ratio) for ratio in ratios])[which])
        self._refuse_too_fine()
        self.stay = stay
        self.slow = None if stay is None else slow_noise(self.allowance, self.sigmas, self.steps, stay)
        self._ledger = Ledger(
            self.readings_per_window,
            remedy="Make the cloak with a larger readings_per_window, which adds noise, or make a new cloak for the "
            "next window. To experiment, use simulate(readings, rng=...).",
        )
        self._freeze()

    @property
    def sigma(self) -> Any:
        """Standard deviation of a reading's noise: a float, or one per sensor if they differ."""
        return scalar_or_array(self.sigmas)

    @property
    def resolution(self) -> Any:
        """Step in which the hardware reads: a float, or one per sensor if they differ; None if it is not stated."""
        stated = self.allowance.hardware.resolution
        return None if stated is None else scalar_or_array(stated)

    @property
    def noise_floor(self) -> Any:
        """Noise that sensors have before their hardware rounds: a float, or one per sensor; None if not stated."""
        stated = self.allowance.own
        return None if stated is None else scalar_or_array(stated.own)

    @property
    def rests_on_noise_floor(self) -> bool:
        """Whether the claim holds only if the sensors have the stated noise floor."""
        readings = self.readings_per_window if self.stay is None else self.stay.readings
        slow = stay_mus(self.allowance, self.sigmas, self.steps, self.slow, readings)
        return self.allowance.rests_on_noise_floor(self.sigmas) or bool(np.argmin(slow))

    @property
    def step(self) -> Any:
        """Step in which readings are sent: a float, or one per sensor if they differ."""
        return scalar_or_array(self.steps)

    @property
    def total_sigmas(self) -> FloatArray:
        """Standard deviation of what each sensor sends around the map: noise, noise floor and map error, shape (m,)."""
        stated = self.allowance.own
        return np.asarray(np.hypot(np.hypot(self.sigmas, 0.0 if stated is None else stated.own), self._map_errors))

    @property
    def claimed_sigmas(self) -> FloatArray:
        """Noise that an observer faces for certain, shape (m,); for Laplace noise, the Gaussian equivalent."""
        return self.sigmas / self.distribution.efficiency

    @property
    def offsets(self) -> Nuisance | None:
        """The slow offsets of the sensors, which recovery takes into account; None without."""
        return None if self.slow is None or self.stay is None else self.slow.nuisance(self.steps, self.stay.period)

    def stay_mu(self, readings: int) -> float:
        """The mu of a source that stays where it is for up to so many frames, with all other frames at hand."""
        slow = stay_mus(self.allowance, self.sigmas, self.steps, self.slow, readings)
        return min(fresh_stay_mu(self.allowance, self.sigmas, readings), *slow)

    def stay_worth(self, readings: int) -> float:
        """How many readings with fresh noise alone tell as much of a source that stays for so many, at most."""
        if self.slow is None:
            return readings
        return min(readings, self.slow.information(self.claimed_sigmas, self.steps).of(readings))

    @property
    def observers(self) -> int:
        """How many observers the claim is about, and adds up over for one of all sensors: one, or one per sensor."""
        return 1 if self.scope is Scope.NETWORK else self.physics.sensors

    @property
    def profile(self) -> Profile | LaplaceProfile:
        """All (epsilon, delta) that a full window meets."""
        return self.compose(self.readings_per_window)

    def compose(self, readings: int) -> Profile | LaplaceProfile:
        """All (epsilon, delta) that so many frames meet together."""
        return self.distribution.profile(self.frame_mu, self.family.doubt, readings)

    @property
    def resolution_cost(self) -> float:
        """How much more noise all steps take, the hardware's too, as a fraction."""
        return self.frame_mu / self.allowance.cost(self.sigmas, 0 * self.roundings) - 1

    @property
    def timing_cost(self) -> float:
        """How much more noise sources take that move between the readings of a frame, as a fraction, at equal noise."""
        if self.scope is Scope.SENSOR:
            return 0.0
        return self.family.steepest().value / self.family.at_once.steepest().value - 1

    @cached_property
    def design_report(self) -> DesignReport:
        """How well one window of readings locates a lone source, against equal noise."""
        root = math.sqrt(self.readings_per_window) * self.distribution.efficiency
        sigma, equal = (noise / root for noise in (self.sigmas, self.allowance.equal().sigma))
        return report(self.physics, sigma=sigma, equal=equal, drift=self.allowance.drift)

    @property
    def spent(self) -> int:
        """Frames released so far."""
        return self._ledger.spent

    def release(self, readings: ArrayLike, *, exact: bool = False) -> FloatArray:
        """Cloak true readings with private noise: shape (m,) or (frames, m), in units of the readings.

        Every returned value is a whole number of steps. Each frame spends one of `readings_per_window`; a call that
        would exceed them is refused before anything is released. Without a `resolution`, readings that all sit on a
        decimal or binary grid give a `HardwareStepWarning`: they look rounded by hardware. `exact` states that they
        are not. What is released and spent does not depend on the warning, which is for the caller and not to be
        published.
        """
        if self.slow is not None:
            raise CalibrationError(
                "a cloak with a stay cannot release: its offsets would start again with the cloak of the next window. "
                "Devices keep them. To experiment, use simulate(readings, rng=...)."
            )
        steps = frames_in_steps(readings, self.steps)
        self._ledger.spend(steps.size // self.physics.sensors)
        if self.allowance.hardware.resolution is None and not exact:
            warn_if_rounded(np.asarray(readings, dtype=np.float64), float(self.steps.min()))
        return self._noised(steps, private_words)

    def simulate(self, readings: ArrayLike, *, rng: np.random.Generator, walk: OffsetWalk | None = None) -> FloatArray:
        """Cloak readings by the law of `release` and of devices, reproducibly and so not privately; spends nothing.

        Slow offsets start again with each call, unless they continue a `walk`.
        """
        steps, words = frames_in_steps(readings, self.steps), simulated_words(rng)
        if self.slow is not None:
            walk = walk or OffsetWalk(self.slow, words)
            steps = steps + walk.steps(steps.size // self.physics.sensors).reshape(steps.shape)
        return self._noised(steps, words)

    def to_steps(self, released: ArrayLike) -> IntArray:
        """Turn released readings into the integers that go over the wire."""
        values = frames("released", released, self.physics.sensors, error=ReadingError)
        return np.asarray(np.rint(values / self.steps), dtype=np.int64)

    def explain(self) -> Explanation:
        """Explain in plain sentences what is hidden from whom, what is not, the cost, and what drives the noise."""
        return Guarantee.of(self).explanation

    def __repr__(self) -> str:
        return (
            f"Cloak({type(self.physics).__name__}, epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"alpha={self.alpha:g}, scope={self.scope}, "
            f"readings_per_window={self.readings_per_window})"
        )

    def _refuse_too_fine(self) -> None:
        """Refuse steps in which the noise of a sensor is too large for its table."""
        largest = int(np.argmax(self.ratios))
        if self.ratios[largest] > DEVICE_TABLES.ratio:
            raise CalibrationError(
                f"step={self.steps[largest]:g}: the noise of sensor {largest} is {self.ratios[largest]:,.0f} steps, "
                f"and tables go up to {DEVICE_TABLES.ratio:,.0f}. Give a coarser step, or a coarser resolution.",
                step=float(self.steps[largest]),
            )

    def _levels(self, sigma: ArrayLike | None) -> NoiseLevels:
        if sigma is not None:
            return self.allowance.chosen(sigma)
        return self.allowance.equal() if self.design is Design.EQUAL else self.allowance.least_error()

    def _noised(self, steps: FloatArray, words: WordSource) -> FloatArray:
        ratios, kinds = np.unique(self.ratios, return_inverse=True)
        tables = [self.distribution.table(float(ratio)) for ratio in ratios]
        whole = steps.reshape(-1, self.physics.sensors)
        drawn = noise_of_frames(tables, len(whole), words, kinds=kinds)
        return np.asarray((whole + drawn) * self.steps).reshape(steps.shape)
