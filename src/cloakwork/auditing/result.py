"""The result of an audit: verdict, bounds, witness and privacy curve."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakwork._checks import FloatArray, frozen, rounded_down
from cloakwork._extras import optional_parts
from cloakwork.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEVER_PROOF = (
    "No audit can verify a claim. Not excluded: other events, other inputs, leaks too small for this many reports, and "
    "a mechanism that behaves differently when it is not watched."
)
_CURVES = ("epsilons", "estimate", "lower", "upper")


class Verdict(StrEnum):
    """The end of an audit. There is no "verified": no number of reports can show that."""

    VIOLATION = "violation"
    NONE_FOUND = "no violation found"
    WITHHELD = "withheld: reports depend on each other"


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The event that shows a violation, in words such as "the output is above 1.25".

    `direction` is "0->1" where the event is too likely on input 0 for how rare it is on input 1, "1->0" the other way
    round. It happened `counts` times on inputs 0 and 1, among so many `reports` of each; where the event is about a
    `span` of more than one report, these are runs of reports. `source` is its kind, one of `Audit.events`.

    Notes
    -----
    The counts are of the reports that were kept, and the event was chosen with their help: they illustrate the leak.
    `Audit.epsilon_lower` and `Audit.delta_lower` are certain.
    """

    event: str
    direction: str
    counts: tuple[int, int]
    reports: int
    source: str
    span: int = 1

    def __post_init__(self) -> None:
        if self.direction not in {"0->1", "1->0"}:
            raise InputError(f'direction={self.direction!r}: give "0->1" or "1->0".', direction=self.direction)
        if len(self.counts) != 2 or not all(0 <= number <= self.reports for number in self.counts):
            raise InputError(
                f"counts={self.counts} of {self.reports} reports: give two counts, each from 0 to reports.",
                counts=self.counts,
            )

    @property
    def frequencies(self) -> tuple[float, float]:
        """Frequency of the event on input 0 and on input 1."""
        return self.counts[0] / max(self.reports, 1), self.counts[1] / max(self.reports, 1)

    @property
    def counted(self) -> str:
        """The things that `reports` counts, in words."""
        return "reports" if self.span == 1 else "runs of reports"

    @property
    def favoured(self) -> tuple[float, float]:
        """Frequency of the event on the input where it is too likely, and on the other."""
        first, second = self.frequencies
        return (first, second) if self.direction == "0->1" else (second, first)

    def __str__(self) -> str:
        first, second = (f"{100 * frequency:.4g} %" for frequency in self.frequencies)
        return f"{self.event}: {first} of the {self.counted} on input 0, {second} on input 1"


@dataclass(frozen=True, kw_only=True)
class PrivacyCurve:
    """The delta that each epsilon needs, with a band that holds for all epsilons at once.

    `epsilons` rise from 0, shape (k,), like `estimate`, `lower` and `upper`, the delta at each and its band. `events`
    are those for which the band holds: `upper` says nothing about others; `lower` bounds the true profile. It rests on
    so many `reports` per input.

    Notes
    -----
    No epsilons at all (`NO_CURVE`) where the verdict is withheld: what counts reports as independent says nothing.
    """

    epsilons: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    events: str
    reports: int

    def __post_init__(self) -> None:
        shape = np.shape(self.epsilons)
        for name in _CURVES:
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or values.shape != shape:
                raise InputError(f"{name} has shape {values.shape}: a profile has one value per epsilon.", name=name)
            object.__setattr__(self, name, frozen(values))
        if not (np.diff(self.epsilons) > 0).all():
            raise InputError("epsilons of a profile must rise.")
        if not ((self.lower <= self.estimate) & (self.estimate <= self.upper)).all():
            raise InputError("a profile's estimate must lie within its band.")


NO_CURVE = PrivacyCurve(
    epsilons=np.empty(0), estimate=np.empty(0), lower=np.empty(0), upper=np.empty(0), events="none", reports=0
)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The outcome of an audit of the claim (epsilon, delta) on one pair of inputs.

    The epsilon that holds at the claimed delta is at least `epsilon_lower`, and the delta that holds at the claimed
    epsilon at least `delta_lower`. `reports_used` per input were drawn, of at most `ceiling`. If reports seem to depend
    on each other, `dependence` says how, the verdict is withheld and the `profile` empty. `events` are the kinds that
    were tried. If all reports were the same, `only` is that report in words.

    Notes
    -----
    The false alarms of all events together are at most 1 - confidence, at whatever time the audit stopped. Each of the
    two bounds holds with this confidence; where reports depend on each other both are 0.

    The band of the profile is another test, with a confidence of its own. Where it lies above a claim that the bets did
    not reject, the verdict takes precedence: believing either test would double the false alarms.

    >>> import numpy as np
    >>> from cloakwork.auditing import audit
    >>> result = audit(lambda database, size, rng: np.full(size, database), epsilon=1.0, reports=1_000)
    >>> print(result.verdict, result.epsilon_lower > 1)
    violation True
    """

    verdict: Verdict
    epsilon: float
    delta: float
    confidence: float
    epsilon_lower: float
    delta_lower: float
    witness: Witness | None
    reports_used: int
    ceiling: int
    independent: bool
    dependence: str
    profile: PrivacyCurve
    events: tuple[str, ...]
    only: str = ""

    def __post_init__(self) -> None:
        if (self.verdict is Verdict.WITHHELD) == self.independent:
            raise InputError("a verdict is withheld when, and only when, the reports are not independent.")
        if self.independent == bool(self.dependence):
            raise InputError("dependence says what was seen when, and only when, the reports are not independent.")
        violation = self.verdict is Verdict.VIOLATION
        if violation != (self.epsilon_lower > self.epsilon) or violation != (self.witness is not None):
            raise InputError("a violation has a witness and a bound above the claimed epsilon; nothing else has.")

    def to_json(self) -> dict[str, Any]:
        """The audit as plain values, ready for `json.dumps`."""
        return {
            "verdict": self.verdict.value,
            "claim": {"epsilon": self.epsilon, "delta": self.delta},
            "confidence": self.confidence,
            "epsilon_lower": self.epsilon_lower,
            "delta_lower": self.delta_lower,
            "witness": None
            if self.witness is None
            else {
                **asdict(self.witness),
                "counts": list(self.witness.counts),
                "frequencies": list(self.witness.frequencies),
            },
            "reports_used": self.reports_used,
            "ceiling": self.ceiling,
            "independent": self.independent,
            "dependence": self.dependence,
            "profile": {
                **{name: getattr(self.profile, name).tolist() for name in _CURVES},
                "events": self.profile.events,
                "reports": self.profile.reports,
            },
            "events": list(self.events),
            "not_excluded": NEVER_PROOF,
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the profile, its band and the claim; on new axes unless some are given. Withheld: the claim alone."""
        with optional_parts():
            from matplotlib.figure import Figure  # noqa: PLC0415 - slow to load, and most audits are not drawn

        axes = Figure(figsize=(6.4, 4.2), layout="constrained").subplots() if ax is None else ax
        profile = self.profile
        if len(profile.epsilons):
            band = f"{100 * self.confidence:g} % band"
            axes.fill_between(profile.epsilons, profile.lower, profile.upper, alpha=0.25, label=band)
            axes.plot(profile.epsilons, profile.estimate, label="estimate")
        axes.plot([self.epsilon], [self.delta], "kx", label="claim")
        axes.set(xlabel="epsilon", ylabel="delta", ylim=(0.0, 1.0), title=self.verdict.value)
        axes.legend()
        return axes

    def __str__(self) -> str:
        lines = [
            f"{self.verdict.value[0].upper()}{self.verdict.value[1:]}",
            f"claim: epsilon {self.epsilon:g}, delta {self.delta:g}; confidence {100 * self.confidence:g} %",
            f"reports: {self.reports_used:,} per input of at most {self.ceiling:,}",
            *([f"all reports were the same, on both inputs: {self.only}"] if self.only else []),
            *self._findings(),
            f"events tried: {', '.join(self.events)}",
            NEVER_PROOF,
        ]
        return "\n".join(lines)

    def _findings(self) -> list[str]:
        if self.verdict is Verdict.WITHHELD:
            return [f"seen: {self.dependence}. An audit counts reports as independent, so nothing is concluded."]
        bounds = (
            f"epsilon is at least {rounded_down(self.epsilon_lower)} at delta {self.delta:g}; "
            f"delta is at least {rounded_down(self.delta_lower)} at epsilon {self.epsilon:g}"
        )
        if self.witness is not None:
            return [bounds, f"witness: {self.witness}"]
        at_claim = self.profile.lower[self.profile.epsilons >= self.epsilon]
        if not len(at_claim) or at_claim[0] <= self.delta:
            return [bounds]
        return [
            bounds,
            f"the band of the profile lies above the claim (delta at least {rounded_down(float(at_claim[0]))}): the "
            "verdict counts. Each holds with its own confidence; more reports would tell.",
        ]
