"""Motion detectors of two offices: how many of the occupied quarters of an hour randomised response still shows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import IntArray
from cloakwork.privacy import Flip
from cloakwork.recovery import presence
from papers.drawing import INK, curve, finish
from papers.experiment import Experiment, Run, stream
from papers.recordings import read_columns
from papers.result import Finding, Goal
from papers.rows import Mean, Row, picked

BITS = Path("office_pir_windesheim") / "quarter_hours.csv.gz"
DELTA = 1e-5
EPSILONS = (1.0, 2.0, 4.0)
WINDOWS = {1: "a quarter of an hour", 4: "an hour"}
FEWEST = 500  # bits of an office that is used


class Motion(Finding):
    """What randomised motion bits still show."""

    size = (9.0, 4.2)

    def goals(self) -> tuple[Goal, ...]:
        found = [one.found.value for one in picked(self.shown, readings=1, epsilon=max(EPSILONS))]
        low, high = (f"{100 * end:.0f}" for end in (min(found), max(found)))
        text = f"a bit at epsilon {max(EPSILONS):g} shows four of five occupied quarters in every office"
        return (Goal(text, f"{low} to {high} %", min(found) >= 0.8),)

    def text(self) -> str:
        quarter, hour = (
            [one.found.value for one in picked(self.shown, readings=readings, epsilon=1.0)] for readings in WINDOWS
        )
        right = [100 * one.empty_right for one in self.offices]
        return (
            f"Detectors of {len(self.offices)} offices say every quarter of an hour whether anything moved. Where "
            f"epsilon 1 hides a quarter, the randomised bits still show {100 * min(quarter):.0f} to "
            f"{100 * max(quarter):.0f} % of the occupied quarters; where it hides a whole hour, at most "
            f'{100 * max(hour):.0f} %. Always saying "empty" finds none and is right in {min(right):.0f} to '
            f"{max(right):.0f} % of all quarters. How often people come and how long they stay is known from the days "
            "before, which are not judged."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (readings, name) in zip(panels, WINDOWS.items(), strict=True):
            for number, office in enumerate(self.offices):
                means = [one.found for one in picked(self.shown, office=office.name, readings=readings)]
                curve(axes, EPSILONS, means, number, scale=100, label=f"office {office.name}")
            axes.axhline(0, color=INK, linestyle=":", linewidth=1, label='always "empty"')
            finish(axes, f"hidden: {name}", "epsilon", ticks=EPSILONS, ylim=(-3, 100))
        panels[0].set_ylabel("% of occupied quarters found (bars: 2 errors)")
        panels[1].legend(loc="upper left", fontsize=8)


def recorded_bits() -> Iterator[tuple[str, IntArray, IntArray]]:
    """Yield each office with enough bits, in the order of time: its name, the bits, and the day of each."""
    table = read_columns(BITS)
    for office in np.unique(table["id"]):
        rows = (table["id"] == office) & (table["pir"] != "")
        if rows.sum() >= FEWEST:
            _, day = np.unique(table["timestamp"][rows].astype("U10"), return_inverse=True)
            yield str(office), table["pir"][rows].astype(float).astype(np.int64), day.astype(np.int64)


def _shown(
    office: Row, bits: IntArray, day: IntArray, claim: tuple[float, int], draws: int, key: tuple[int, ...]
) -> Row:
    """How well presence is known in one office: shares, means over draws of the noise, with standard errors over days.

    `found` is the share of occupied quarters that are called occupied, `false` that of empty ones, `right` of all.
    """
    epsilon, readings = claim
    flip = Flip(epsilon=epsilon, delta=0.0 if readings == 1 else DELTA, readings_per_window=readings)
    reports = (flip.simulate(bits, rng=stream(*key, draw)) for draw in range(draws))
    called = [presence(each, flip, stay=office.stay, share=office.share) > 0.5 for each in reports]
    there, occupied = np.mean(called, axis=0), bits == 1
    found, false = (Mean.over(there[which], day[which]) for which in (occupied, ~occupied))
    right = Mean.over(np.where(occupied, there, 1 - there), day)
    return Row(
        office=office.name,
        epsilon=epsilon,
        readings=readings,
        truth=float(flip.truth),
        found=found,
        false=false,
        right=right,
    )


def _work(run: Run) -> Motion:
    offices, shown = [], []
    known = list(recorded_bits())
    for number, (name, bits, days) in enumerate(known):
        (before, judged), day = np.array_split(bits, 2), np.array_split(days, 2)[1]
        stay = float(before[1:][before[:-1] == 1].mean())
        office = Row(
            name=name,
            bits=len(judged),
            occupied=int(judged.sum()),
            empty_right=float((judged == 0).mean()),
            share=float(before.mean()),  # and the length of stays, from the first half of the time
            stay=stay,
        )
        offices.append(office)
        draws = run.choose(40, 6, 2)
        for readings in WINDOWS:
            for k, epsilon in enumerate(EPSILONS):
                shown.append(_shown(office, judged, day, (epsilon, readings), draws, (run.seed, number, readings, k)))
    return Motion(offices=tuple(offices), shown=tuple(shown))


EXPERIMENT = Experiment(
    "recorded-motion",
    "Motion detectors of two offices: what randomised bits still show",
    Motion,
    _work,
    minutes=0.1,
    data=(BITS,),
)
