"""The tools of private data analysis: randomised response, Laplace noise, choices, and what many releases add up to."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize, special

from cloakwork._checks import FloatArray
from cloakwork.privacy import Budget, Chooser, Flip, Profile, largest_mu
from cloakwork.privacy.laplace import largest_shift
from cloakwork.privacy.private_choice import chosen
from papers.drawing import INK, MARKERS, SERIES, log_x
from papers.errata import Erratum
from papers.experiment import Experiment, Run, pick, stream
from papers.lemmas import lemmas
from papers.result import Agreement, Claim, Finding, Goal, Measure
from papers.statistics import Mean

ASKED, YES = 1000, 0.2  # people in a survey, and the share of them for whom yes is true
EPSILONS = (0.5, 1.0, math.log(3), 2.0)
CLAIM = (2.0, 1e-5)
WINDOWS = ((60, *CLAIM), (20, 8.0, 1e-5))
LENGTHS = (1, 2, 5, 10, 20, 60, 200, 600)
NOISES = tuple((claim, k) for claim in ((1.0, 1e-6), (8.0, 1e-5), (1.0, 0.1)) for k in (1, 2, 5, 20))
SCORES, CHOICE = (12, 9, 9, 3, 1, 0), 0.5
REPEATED, SMALL = 24, 1e-6
EACH = 0.0665
SURVEYS, DRAWS = (4000, 400, 20), (40_000, 6_000, 200)
PAIRS, FRAMES = (2000, 2000, 20), (100, 20, 2)
GENEROUS = 1.05


@dataclass(frozen=True)
class Survey:
    """Randomised response at one epsilon: the estimated share, and how far estimates scatter, exact and measured."""

    epsilon: float
    truth: float
    exact: float
    share: Mean
    measured: float


@dataclass(frozen=True)
class Window:
    """The epsilon that each of some readings may have, by three ways of adding up, and the error of their mean."""

    readings: int
    epsilon: float
    delta: float
    added: float
    theorem: float
    exact: float

    @property
    def error(self) -> float:
        """The standard error of the window's share with the exact epsilon."""
        p = float(special.expit(self.exact))
        return math.sqrt(p * (1 - p) / self.readings) / (2 * p - 1)

    @property
    def gaussian(self) -> float:
        """That of Gaussian noise on the share itself."""
        return 1 / largest_mu(self.epsilon, self.delta)


@dataclass(frozen=True)
class Noise:
    """Standard deviations of Gaussian and of Laplace noise that hide a change by 1 in some readings at a claim."""

    epsilon: float
    delta: float
    readings: int
    gaussian: float
    laplace: float

    @property
    def ratio(self) -> float:
        return (self.gaussian / self.laplace) ** 2


@dataclass(frozen=True)
class Choice:
    """Probabilities of the candidates, exact and counted, the mean shortfall, and the worst loss between neighbours."""

    mechanism: Chooser
    exact: tuple[float, ...]
    counted: tuple[float, ...]
    loss: float

    @property
    def shortfall(self) -> float:
        return sum(share * (max(SCORES) - score) for share, score in zip(self.exact, SCORES, strict=True))


@dataclass(frozen=True)
class Sum:
    """The epsilon of several releases together: added, by Theorem 2.6, by concentrated privacy, and exactly."""

    name: str
    added: float
    theorem: float
    concentrated: float
    exact: float | None


@dataclass(frozen=True)
class Toolbox(Finding):
    """Part I of the thesis, and lemmas that the papers use."""

    size: ClassVar[tuple[float, float]] = (13.0, 4.2)
    surveys: tuple[Survey, ...]
    windows: tuple[Window, ...]
    lengths: tuple[Window, ...]
    noises: tuple[Noise, ...]
    choices: tuple[Choice, ...]
    sums: tuple[Sum, ...]
    found: tuple[Erratum, ...]

    def choice(self, mechanism: Chooser) -> Choice:
        return pick(self.choices, mechanism=mechanism)

    @property
    def beyond(self) -> float:
        """Probability of a score that is as far from the best as Lemma 2.10 says at t = 1."""
        far = max(SCORES) - 2 / CHOICE * (math.log(len(SCORES)) + 1)
        shares = self.choice(Chooser.EXPONENTIAL).exact
        return sum(share for share, score in zip(shares, SCORES, strict=True) if score <= far)

    @property
    def _counts(self) -> tuple[int, ...]:
        return tuple(sorted({one.readings for one in self.noises}))

    def claims(self) -> tuple[Claim, ...]:
        bits, windows, exponential = self.windows[0], self.sums[0], self.choice(Chooser.EXPONENTIAL)
        loss = max(abs(math.log(one.truth / (1 - one.truth)) / one.epsilon - 1) for one in self.surveys)
        name = f"{bits.readings} bits at ({bits.epsilon:g}, {bits.delta:g})"
        rows = (
            (
                "Lemma 2.5",
                "epsilons add up",
                f"{name} may have {bits.added:.4f} each; exactly, they may have {bits.exact:.4f}",
                Agreement.LOOSER if bits.exact > GENEROUS * bits.added else Agreement.AGREES,
            ),
            (
                "Theorem 2.6",
                "t releases have sqrt(2 t ln(1/delta')) eps + t eps (e^eps - 1)",
                f"{name} may have {bits.theorem:.4f} each; exactly, they may have {bits.exact:.4f}. For {windows.name} "
                f"it gives {windows.theorem:.3g}, adding up {windows.added:.3g}, and exact is "
                f"{windows.exact or 0.0:.3g}",
                Agreement.LOOSER if bits.exact > GENEROUS * bits.theorem else Agreement.WRONG,
            ),
            (
                "Lemma 2.7",
                "randomised response with p = e^eps/(1 + e^eps) is eps-private",
                f"the largest loss of our whole-number table differs from epsilon by {loss:.0e} of it",
                Agreement.AGREES if loss < 1e-9 else Agreement.WRONG,
            ),
            (
                "Lemma 2.9",
                "the exponential mechanism is eps-private",
                f"all {3 ** len(SCORES)} neighbours of six scores: a loss of {exponential.loss:.3f} where {CHOICE:g} "
                f"is allowed; permute-and-flip has {self.choice(Chooser.PERMUTE_AND_FLIP).loss:.3f}",
                Agreement.AGREES if exponential.loss <= CHOICE else Agreement.WRONG,
            ),
            (
                "Lemma 2.10",
                "a score is 2 (ln n + t)/eps below the best with probability e^-t at most",
                f"{self.beyond:.4f} at t = 1, where {math.exp(-1):.3f} is allowed",
                Agreement.LOOSER if self.beyond < math.exp(-1) / GENEROUS else Agreement.WRONG,
            ),
        )
        stated = tuple(Claim(text, f"McMillan, {where}", found, verdict) for where, text, found, verdict in rows)
        return (*stated, *(one.claim() for one in self.found))

    def goals(self) -> tuple[Goal, ...]:
        bits, flip, other = self.windows[0], *(self.choice(one).shortfall for one in Chooser)
        return (
            Goal(
                f"each of {bits.readings} bits at ({bits.epsilon:g}, {bits.delta:g}) may have epsilon {EACH:g}",
                f"{bits.exact:.4f}",
                bits.exact >= EACH - 5e-5,
            ),
            Goal(
                "permute-and-flip gives up less than the exponential mechanism",
                f"{other / flip:.2f} times",
                flip < other,
            ),
        )

    def measures(self) -> tuple[Measure, ...]:
        measures = [
            Measure(f"share at epsilon {one.epsilon:.3g}", one.share.value, one.share.error) for one in self.surveys
        ]
        measures += [Measure(f"epsilon of one of {one.readings} bits", one.exact) for one in self.windows]
        measures += [
            Measure(f"Gaussian over Laplace, ({one.epsilon:g}, {one.delta:g}), {one.readings}", one.ratio)
            for one in self.noises
        ]
        measures += [Measure(f"shortfall, {one.mechanism}", one.shortfall) for one in self.choices]
        measures += [Measure(one.name, one.exact or one.concentrated) for one in self.sums]
        return tuple(measures)

    def text(self) -> str:
        bits, last = self.windows[0], self.lengths[-1]
        return (
            "Left: a sensor reports one bit again and again, and all reports of a window together have the claim "
            f"({CLAIM[0]:g}, {CLAIM[1]:g}). The more epsilon each report may have, the less noise it needs. Exact "
            f"composition allows {bits.exact:.4f} for each of {bits.readings} reports, Theorem 2.6 of the thesis "
            f"{bits.theorem:.4f}, adding up {bits.added:.4f}; for {last.readings} it is {last.exact:.4f}, "
            f"{last.theorem:.4f} and {last.added:.4f}."
        )

    def draw(self, figure: Figure) -> None:
        first, second, third = figure.subplots(1, 3)
        x = [one.readings for one in self.lengths]
        for number, (name, label) in enumerate((("exact", "exact"), ("theorem", "Theorem 2.6"), ("added", "added up"))):
            up = [getattr(one, name) for one in self.lengths]
            first.plot(x, up, marker=MARKERS[number], color=SERIES[number], label=label)
        log_x(first, x)
        first.set_yscale("log")
        first.set(title=f"Bits at ({CLAIM[0]:g}, {CLAIM[1]:g})", xlabel="readings", ylabel="epsilon of one reading")
        first.grid()
        first.legend()
        for number, (epsilon, delta) in enumerate(dict.fromkeys((one.epsilon, one.delta) for one in self.noises)):
            own = [one for one in self.noises if (one.epsilon, one.delta) == (epsilon, delta)]
            look: Any = {"marker": MARKERS[number], "color": SERIES[number], "label": f"({epsilon:g}, {delta:g})"}
            second.plot([one.readings for one in own], [one.ratio for one in own], **look)
        second.axhline(1.0, color=INK, linestyle=":", linewidth=1)
        log_x(second, self._counts)
        second.set(title="Laplace noise for one sensor", xlabel="readings", ylabel="variance, Gaussian over Laplace")
        second.grid()
        second.legend()
        self._draw_choices(third)

    def _draw_choices(self, axes: Any) -> None:
        for number, one in enumerate(self.choices):
            places = np.arange(len(SCORES)) + (number - 0.5) * 0.36
            axes.bar(places, one.exact, 0.34, color=SERIES[number], label=f"{one.mechanism}")
            axes.plot(places, one.counted, "_", color=INK, markersize=14, label=None if number else "counted")
        axes.set_xticks(range(len(SCORES)), [str(score) for score in SCORES])
        axes.set(title=f"A choice at epsilon {CHOICE:g}", xlabel="score of the candidate", ylabel="probability")
        axes.legend()


def _survey(epsilon: float, surveys: int, rng: np.random.Generator) -> Survey:
    flip = Flip(epsilon=epsilon, readings_per_window=1)
    reports = flip.simulate((rng.random((surveys, ASKED)) < YES).astype(np.int64), rng=rng)
    gap = flip.truth - flip.other
    shares = (reports.mean(axis=1) - flip.other) / gap
    seen = flip.other + YES * gap
    exact = math.sqrt(seen * (1 - seen) / ASKED) / gap
    return Survey(epsilon, flip.truth, exact, Mean.of(shares), float(shares.std(ddof=1)))


def advanced(each: float, times: int, delta: float) -> float:
    """The epsilon of so many releases by Theorem 2.6, with delta' = delta."""
    return math.sqrt(2 * times * math.log(1 / delta)) * each + times * each * math.expm1(each)


def window(readings: int, epsilon: float, delta: float) -> Window:
    """The epsilon of each reading by all three ways."""
    added = epsilon / readings
    theorem = float(optimize.brentq(lambda each: advanced(each, readings, delta) - epsilon, 0.0, epsilon, xtol=1e-12))
    exact = Flip(epsilon=epsilon, delta=delta, readings_per_window=readings).epsilon_per_reading
    return Window(readings, epsilon, delta, added, theorem, exact)


def _noise(epsilon: float, delta: float, readings: int) -> Noise:
    laplace = math.sqrt(2) / largest_shift(epsilon, delta, readings=readings)
    return Noise(epsilon, delta, readings, math.sqrt(readings) / largest_mu(epsilon, delta), laplace)


def exponential(scores: FloatArray) -> FloatArray:
    """The probabilities of the exponential mechanism, for scores (..., n)."""
    return np.asarray(special.softmax(CHOICE * scores / 2, axis=-1))


def permute_and_flip(scores: FloatArray) -> FloatArray:
    """The probabilities of permute-and-flip, for scores (..., n).

    Let candidates arrive at uniform times. Candidate i, at time t, is asked if each other one is not there yet or was
    refused: p_i times the integral of prod_j (1 - t p_j), a polynomial that Gauss' rule integrates exactly.
    """
    accept = np.exp(CHOICE * (scores - scores.max(axis=-1, keepdims=True)) / 2)
    nodes, weights = np.polynomial.legendre.leggauss(scores.shape[-1])
    left = 1 - (nodes[:, None] + 1) / 2 * accept[..., None, :]  # (..., nodes, n); never 0, as nodes are below 1
    others = left.prod(axis=-1, keepdims=True) / left
    return np.asarray(accept * np.tensordot(weights / 2, np.moveaxis(others, -2, 0), axes=1))


EXACT: dict[Chooser, Callable[[FloatArray], FloatArray]] = {
    Chooser.PERMUTE_AND_FLIP: permute_and_flip,
    Chooser.EXPONENTIAL: exponential,
}


def _choice(mechanism: Chooser, draws: int, rng: np.random.Generator) -> Choice:
    scores = np.array(SCORES, dtype=np.float64)
    exact = EXACT[mechanism](scores)
    moved = EXACT[mechanism](scores + np.array(list(product((-1.0, 0.0, 1.0), repeat=len(SCORES)))))
    whole, factor = [Fraction(score) for score in SCORES], Fraction(CHOICE) / 2
    named = [chosen(whole, factor, mechanism, lambda below: int(rng.integers(below))) for _ in range(draws)]
    counted = np.bincount(named, minlength=len(SCORES)) / draws
    loss = float(np.abs(np.log(moved / exact)).max())
    return Choice(mechanism, tuple(exact.tolist()), tuple(counted.tolist()), loss)


def _sums() -> tuple[Sum, ...]:
    mu2 = REPEATED * largest_mu(1.0, SMALL) ** 2
    budget = Budget().choice(CHOICE, times=REPEATED)

    def concentrated(rho: float) -> float:
        return rho + 2 * math.sqrt(rho * math.log(1 / SMALL))

    return (
        Sum(
            f"{REPEATED} windows of Gaussian noise, (1, {SMALL:g}) each",
            float(REPEATED),
            advanced(1.0, REPEATED, SMALL),
            concentrated(mu2 / 2),
            Profile(math.sqrt(mu2)).epsilon(SMALL),
        ),
        Sum(
            f"{REPEATED} releases of any kind with epsilon {CHOICE:g} and no delta",
            REPEATED * CHOICE,
            advanced(CHOICE, REPEATED, SMALL),
            concentrated(REPEATED * CHOICE**2 / 2),
            budget.epsilon(SMALL),
        ),
        Sum(
            f"{REPEATED} choices at epsilon {CHOICE:g} by the exponential mechanism",
            REPEATED * CHOICE,
            advanced(CHOICE, REPEATED, SMALL),
            concentrated(REPEATED * CHOICE**2 / 8),
            None,
        ),
    )


def _work(run: Run) -> Toolbox:
    seed, surveys, draws = run.seed, run.choose(*SURVEYS), run.choose(*DRAWS)
    parts = list(run.each(range(len(EPSILONS)), after=3))
    asked = tuple(_survey(EPSILONS[k], surveys, stream(seed, 0, k)) for k in parts)
    noises = tuple(_noise(*claim, k) for claim, k in NOISES)
    choices = tuple(_choice(one, draws, stream(seed, 1, k)) for k, one in enumerate(Chooser))
    tried = tuple(lemmas(run.choose(*PAIRS), run.choose(*FRAMES), stream(seed, 3)))
    run.progress(1, 1)
    return Toolbox(
        asked,
        tuple(window(*one) for one in WINDOWS),
        tuple(window(k, *CLAIM) for k in LENGTHS),
        noises,
        choices,
        _sums(),
        tried,
    )


EXPERIMENT = Experiment(
    "toolbox",
    "Randomised response, Laplace noise, private choices and composition: the tools of Part I",
    Toolbox,
    _work,
    shows="McMillan, Lemmas 2.5, 2.7, 2.9, 2.10 and 3.5, Theorems 2.6 and 8.4; Gilbert and McMillan, Lemmas 10 and 16, "
    "Theorems 11 and 12; Fawaz, Muthukrishnan and Nikolov, Theorem 6",
    minutes=0.3,
)
