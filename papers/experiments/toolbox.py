"""The tools of private data analysis: randomised response, Laplace noise, choices, and what many releases add up to."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize, special

from cloakwork._checks import FloatArray
from cloakwork.privacy import Budget, Chooser, Flip, Profile, largest_mu
from cloakwork.privacy.laplace import largest_shift
from cloakwork.privacy.private_choice import chosen
from papers.drawing import INK, curve, draw_bars, finish
from papers.errata.erratum import claim
from papers.experiment import Experiment, Run, stream
from papers.lemmas import lemmas
from papers.result import Agreement, Claim, Finding, Goal
from papers.rows import Mean, Row, pick, picked

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


def shortfall(choice: Row) -> float:
    """By how much the chosen score is below the best, on average."""
    return float(sum(share * (max(SCORES) - score) for share, score in zip(choice.exact, SCORES, strict=True)))


class Toolbox(Finding):
    """Part I of the thesis, and lemmas that the papers use."""

    size = (13.0, 4.2)

    @property
    def beyond(self) -> float:
        """Probability of a score that is as far from the best as Lemma 2.10 says at t = 1."""
        far = max(SCORES) - 2 / CHOICE * (math.log(len(SCORES)) + 1)
        shares = pick(self.choices, mechanism=Chooser.EXPONENTIAL).exact
        return float(sum(share for share, score in zip(shares, SCORES, strict=True) if score <= far))

    def claims(self) -> tuple[Claim, ...]:
        bits, windows = self.windows[0], self.sums[0]
        flip, exponential = (pick(self.choices, mechanism=one) for one in Chooser)
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
                Agreement.of(loss < 1e-9),
            ),
            (
                "Lemma 2.9",
                "the exponential mechanism is eps-private",
                f"all {3 ** len(SCORES)} neighbours of six scores: a loss of {exponential.loss:.3f} where {CHOICE:g} "
                f"is allowed; permute-and-flip has {flip.loss:.3f}",
                Agreement.of(exponential.loss <= CHOICE),
            ),
            (
                "Lemma 2.10",
                "a score is 2 (ln n + t)/eps below the best with probability e^-t at most",
                f"{self.beyond:.4f} at t = 1, where {math.exp(-1):.3f} is allowed",
                Agreement.LOOSER if self.beyond < math.exp(-1) / GENEROUS else Agreement.WRONG,
            ),
        )
        stated = tuple(Claim(text, f"McMillan, {where}", found, verdict) for where, text, found, verdict in rows)
        return (*stated, *map(claim, self.found))

    def goals(self) -> tuple[Goal, ...]:
        bits, flip, other = self.windows[0], *(shortfall(pick(self.choices, mechanism=one)) for one in Chooser)
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
            curve(first, x, [getattr(one, name) for one in self.lengths], number, label=label)
        first.set_yscale("log")
        title = f"Bits at ({CLAIM[0]:g}, {CLAIM[1]:g})"
        finish(first, title, "readings", "epsilon of one reading", ticks=x, legend=10)
        for number, (epsilon, delta) in enumerate(dict.fromkeys((one.epsilon, one.delta) for one in self.noises)):
            own = list(picked(self.noises, epsilon=epsilon, delta=delta))
            ratios = [(one.gaussian / one.laplace) ** 2 for one in own]
            curve(second, [one.readings for one in own], ratios, number, label=f"({epsilon:g}, {delta:g})")
        second.axhline(1.0, color=INK, linestyle=":", linewidth=1)
        title, ticks = "Laplace noise for one sensor", sorted({one.readings for one in self.noises})
        finish(second, title, "readings", "variance, Gaussian over Laplace", ticks=ticks, legend=10)
        draw_bars(third, [str(score) for score in SCORES], {one.mechanism: one.exact for one in self.choices})
        for number, one in enumerate(self.choices):
            places = np.arange(len(SCORES)) + (number - 0.5) * 0.4
            third.plot(places, one.counted, "_", color=INK, markersize=14, label=None if number else "counted")
        finish(third, f"A choice at epsilon {CHOICE:g}", "score of the candidate", "probability", legend=10)
        third.grid(visible=False)


def _survey(epsilon: float, surveys: int, rng: np.random.Generator) -> Row:
    """Randomised response at one epsilon: the estimated share, and how far estimates scatter, exact and measured."""
    flip = Flip(epsilon=epsilon, readings_per_window=1)
    reports = flip.simulate((rng.random((surveys, ASKED)) < YES).astype(np.int64), rng=rng)
    gap = flip.truth - flip.other
    shares = (reports.mean(axis=1) - flip.other) / gap
    seen = flip.other + YES * gap
    exact = math.sqrt(seen * (1 - seen) / ASKED) / gap
    return Row(
        epsilon=epsilon,
        truth=flip.truth,
        exact=exact,
        share=Mean.of(shares),
        measured=float(shares.std(ddof=1)),
    )


def advanced(each: float, times: int, delta: float) -> float:
    """The epsilon of so many releases by Theorem 2.6, with delta' = delta."""
    return math.sqrt(2 * times * math.log(1 / delta)) * each + times * each * math.expm1(each)


def window(readings: int, epsilon: float, delta: float) -> Row:
    """The epsilon that each of some readings may have, by three ways of adding up."""
    added = epsilon / readings
    theorem = float(optimize.brentq(lambda each: advanced(each, readings, delta) - epsilon, 0.0, epsilon, xtol=1e-12))
    exact = Flip(epsilon=epsilon, delta=delta, readings_per_window=readings).epsilon_per_reading
    return Row(readings=readings, epsilon=epsilon, delta=delta, added=added, theorem=theorem, exact=exact)


def _noise(epsilon: float, delta: float, readings: int) -> Row:
    """Standard deviations of Gaussian and of Laplace noise that hide a change by 1 in some readings at a claim."""
    laplace = math.sqrt(2) / largest_shift(epsilon, delta, readings=readings)
    gaussian = math.sqrt(readings) / largest_mu(epsilon, delta)
    return Row(epsilon=epsilon, delta=delta, readings=readings, gaussian=gaussian, laplace=laplace)


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


def _choice(mechanism: Chooser, draws: int, rng: np.random.Generator) -> Row:
    """Probabilities of the candidates, exact and counted, and the worst loss between neighbours."""
    scores = np.array(SCORES, dtype=np.float64)
    exact = EXACT[mechanism](scores)
    moved = EXACT[mechanism](scores + np.array(list(product((-1.0, 0.0, 1.0), repeat=len(SCORES)))))
    whole, factor = [Fraction(score) for score in SCORES], Fraction(CHOICE) / 2
    named = [chosen(whole, factor, mechanism, lambda below: int(rng.integers(below))) for _ in range(draws)]
    counted = np.bincount(named, minlength=len(SCORES)) / draws
    loss = float(np.abs(np.log(moved / exact)).max())
    return Row(mechanism=mechanism, exact=tuple(exact.tolist()), counted=tuple(counted.tolist()), loss=loss)


def _sums() -> tuple[Row, ...]:
    """The epsilon of several releases together: added, by Theorem 2.6, by concentrated privacy, and exactly."""
    mu2 = REPEATED * largest_mu(1.0, SMALL) ** 2

    def total(name: str, each: float, rho: float, exact: float | None) -> Row:
        theorem, concentrated = advanced(each, REPEATED, SMALL), rho + 2 * math.sqrt(rho * math.log(1 / SMALL))
        name = f"{REPEATED} {name}"
        return Row(name=name, added=REPEATED * each, theorem=theorem, concentrated=concentrated, exact=exact)

    return (
        total(f"windows of Gaussian noise, (1, {SMALL:g}) each", 1.0, mu2 / 2, Profile(math.sqrt(mu2)).epsilon(SMALL)),
        total(
            f"releases of any kind with epsilon {CHOICE:g} and no delta",
            CHOICE,
            REPEATED * CHOICE**2 / 2,
            Budget().choice(CHOICE, times=REPEATED).epsilon(SMALL),
        ),
        total(f"choices at epsilon {CHOICE:g} by the exponential mechanism", CHOICE, REPEATED * CHOICE**2 / 8, None),
    )


def _work(run: Run) -> Toolbox:
    seed, surveys, draws = run.seed, run.choose(*SURVEYS), run.choose(*DRAWS)
    return Toolbox(
        surveys=tuple(_survey(epsilon, surveys, stream(seed, 0, k)) for k, epsilon in enumerate(EPSILONS)),
        windows=tuple(window(*one) for one in WINDOWS),
        lengths=tuple(window(k, *CLAIM) for k in LENGTHS),
        noises=tuple(_noise(*claimed, k) for claimed, k in NOISES),
        choices=tuple(_choice(one, draws, stream(seed, 1, k)) for k, one in enumerate(Chooser)),
        sums=_sums(),
        found=tuple(lemmas(run.choose(*PAIRS), run.choose(*FRAMES), stream(seed, 3))),
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
