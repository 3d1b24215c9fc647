"""The reports of `cloakwork plan`: an answer of at most 18 lines, or every figure."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import duration, rounded_down, rounded_up
from cloakwork.accuracy import Limits
from cloakwork.cli.output import counted, working
from cloakwork.cli.planned_noise import planning, write_plan
from cloakwork.cli.report import Labelled, Row, Table, length, render
from cloakwork.privacy import Cloak, Exposure, Guarantee, Scope
from cloakwork.site import (
    Advice,
    BitPlan,
    BitSite,
    CostOfDrift,
    Plan,
    Site,
    cost_of_drift,
    forecast,
    freeze,
    freeze_bits,
    locate,
    plan_advice,
    share_detected,
    spans_of,
    window_limits,
)

SHOWN_SPANS = 4  # a window, an hour, eight hours, a day; --details shows all
OF_CLOAK = (
    *("epsilon", "delta", "alpha", "scope", "noise", "readings_per_window", "stay", "sensitivity", "sigma", "step"),
    *("resolution", "noise_floor", "rests_on_noise_floor", "resolution_cost", "timing_cost"),
)
KEEPS = "Someone keeps readings for"
CAVEAT = (
    "An epsilon above 10 hides little. The right cell and the error are what the best method reaches with all sensors "
    "against a lone source that stays where it is; someone who knows its habits does better."
)


def plan_bits(site: BitSite, path: Path, out: Path | None, *, details: bool, json: bool) -> None:
    """Plan a site of bits."""
    bits = freeze_bits(site)
    if out is not None:
        write_plan(bits, out)
    guarantee = Guarantee.of_flip(site.flip, spans=spans_of(site))
    render(BitsReport(site, bits, path, guarantee, details, out is not None), json=json)


def plan_site(
    site: Site, path: Path, out: Path | None, *, picture: Path | None, simulate: bool, details: bool, json: bool
) -> None:
    """Plan a site of readings."""
    with working(planning(site)):
        cloak = site.cloak()
        frozen = freeze(site, cloak)
    if simulate:
        with working("simulating people") as show:
            frozen = replace(frozen, forecast=forecast(site, cloak, progress=show))
    with working("computing what an observer learns"):
        report = PlanReport(
            site,
            cloak,
            frozen,
            path,
            window_limits(cloak),
            Guarantee.of(cloak, spans=spans_of(site), sensor_names=site.sensor_ids),
            share_detected(cloak),
            None if site.drift is None else cost_of_drift(site, cloak),
            (*plan_advice(site, cloak), *(frozen.forecast.advice if frozen.forecast else ())),
            details,
            out is not None,
        )
    if out is not None:
        write_plan(frozen, out, *site.files.values())
    if picture is not None:
        with working("drawing"):
            from cloakwork.cli.draw import draw_site  # noqa: PLC0415 - Matplotlib is slow to load

            draw_site(picture, site, cloak)
    render(report, json=json)


@dataclass(frozen=True, eq=False)
class PlanReport:
    """The plan of a site of readings: an answer of at most 18 lines, or every figure."""

    site: Site
    cloak: Cloak
    frozen: Plan
    path: Path
    bounds: Limits | None
    guarantee: Guarantee
    detected: float
    drift: CostOfDrift | None
    advice: tuple[Advice, ...]
    details: bool
    written: bool

    def as_dict(self) -> Mapping[str, Any]:
        """The plan as plain values."""
        site, cloak, report = self.site, self.cloak, self.cloak.design_report
        return {
            "site": site.name,
            "plan": self.frozen.digest,
            "unit": site.spec.unit,
            **{name: getattr(cloak, name) for name in OF_CLOAK},
            **{name: getattr(cloak.physics, name) for name in ("places", "sensors", "rank")},
            "window_seconds": site.spec.privacy.window,
            "schedule": self.frozen.schedule,
            "noise_tables": self.frozen.tables,
            "mu": cloak.profile.mu,
            "design": {"kind": cloak.design, **asdict(report)},
            "noticed": self.detected,
            "drift": self.drift,
            "limits": self.bounds,
            "estimator": self._estimator,
            "forecast": self.frozen.forecast,
            "max_count": site.spec.sources.max_count,
            "over_time": self.guarantee.over_time,
            "left_open": list(map(str, site.left_open)),
            "explanation": self.guarantee.explanation,
            "warnings": list(map(str, self.advice)),
        }

    def rows(self) -> Iterator[Row]:
        """The answer, what an observer learns over time, what to correct, what to do next."""
        physics = self.cloak.physics
        every = _every(self.frozen.schedule.period_ms / 1000)
        sensors, cells = counted(physics.sensors, "sensor"), counted(physics.places, "cell")
        yield f"{self.site.name}: {sensors}, {cells}, a reading every {every}"
        yield ""
        yield from answer(self.site, self.cloak, self.guarantee)
        yield Labelled("Accuracy", self._simulated())
        yield Labelled("", self._located())
        yield ""
        yield over_time(self.site, self.guarantee, None if self.details else SHOWN_SPANS)
        if self.details:
            yield from self._every_figure()
        yield from _ending(self.path, self.advice, written=self.written)

    @property
    def _estimator(self) -> str:
        choice = self.site.estimator()
        return f"{type(choice.estimator).__name__}: {choice.reason}"

    def _simulated(self) -> str:
        if self.frozen.forecast is not None:
            return self.frozen.forecast.sentence
        why = self.site.not_followed or ("there are too many people" if self.site.samples_locally else "")
        return f"rooms and counts are not simulated{f': {why}' if why else ''}"

    def _located(self) -> str:
        std = self.guarantee.over_time[0].std
        if std is None:
            return "the best possible is not computed for this site"
        if not np.isfinite(std):
            return "one window alone does not locate a source"
        return (
            f"one window locates a lone source to {length(std, self.site.length_unit, lower=True)} (standard deviation)"
        )

    def _every_figure(self) -> Iterator[Row]:
        """What the guarantee says in sentences, and what it costs in accuracy."""
        yield CAVEAT
        yield ""
        unit = f" {self.site.unit}".rstrip()
        yield f"A source changes a reading by up to {self.cloak.physics.peak:.4g}{unit}; all noise is in this unit."
        yield str(self.guarantee.explanation)
        yield "Accuracy for a lone source"
        yield f"  - One frame detects it in {100 * self.detected:.0f} % of cases."
        if self.drift is not None:
            yield f"  - With the stated drift, one frame detects it in {100 * self.drift.noticed:.0f} % of cases."
            if self.drift.average_emd is not None:
                least = length(self.drift.average_emd, self.site.length_unit, lower=True)
                yield f"  - With the stated drift, the mean error of one window is at least {least}."
        yield f"  - Recovery will use {self._estimator}."


def answer(site: Site, cloak: Cloak, guarantee: Guarantee) -> Iterator[Labelled]:
    """What is promised to whom, and what is not hidden."""
    alone = cloak.scope is Scope.SENSOR
    move, window = length(cloak.alpha, site.length_unit), _every(site.spec.privacy.window)
    seen = "one sensor" if alone else "all sensors"
    claim = f"a move of up to {move} in any {window} is hidden from anyone who sees {seen}"
    yield Labelled("Guarantee", f"{claim}: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}")
    guess = f"right in at most {guarantee.best_test} % of cases (coin: 50 %)"
    yield Labelled("", f'the best guess at "did it move?" is {guess}')
    stay = site.spec.privacy.stay
    others = "what several sensors show together; " if alone else ""
    what = "presence, number, room" if site.length_unit else "presence and number"
    stays = "where someone stays for hours (below)"
    if stay is not None:
        stays = f"where someone stays for more than {duration(stay.length)}"
        claim = f"epsilon {stay.epsilon:g}, delta {stay.delta:g}; right in at most {guarantee.stay_best_test} %"
        yield Labelled("", f"a seat, within {move}, over {duration(stay.length)}: {claim}")
    yield Labelled("Not hidden", f"{others}{what}; {stays}")


def over_time(site: Site, guarantee: Guarantee, shown: int | None = SHOWN_SPANS) -> Table:
    """What an observer learns who keeps all readings."""

    def cells(span: Exposure) -> Iterator[str]:
        yield f"  {span.time}"
        for epsilon in (span.epsilon, span.together, span.stay):
            yield "" if epsilon is None else rounded_up(epsilon, 3)
        yield "" if span.right_place is None else f"{rounded_up(100 * span.right_place, 3)} %"
        yield "" if span.mean_distance is None else length(span.mean_distance, site.length_unit, lower=True)

    heads = (KEEPS, "epsilon", "epsilon, all sensors", "epsilon, stay", "right cell", "mean error")
    return Table.of(heads, map(cells, guarantee.over_time[:shown]))


@dataclass(frozen=True, eq=False)
class BitsReport:
    """The plan of a site of bits."""

    site: BitSite
    frozen: BitPlan
    path: Path
    guarantee: Guarantee
    details: bool
    written: bool

    def as_dict(self) -> Mapping[str, Any]:
        """The plan as plain values."""
        plan = self.frozen
        return {
            "site": self.site.name,
            "plan": plan.digest,
            "sensors": list(plan.ids),
            "zones": [zone.id for zone in self.site.zones],
            **asdict(plan.claim),
            "window_seconds": plan.window,
            "schedule": plan.schedule,
            "each": plan.each,
            "truth": 1 - plan.other,
            "over_time": self.guarantee.over_time,
            "assumptions": list(self.site.assumptions),
        }

    def rows(self) -> Iterator[Row]:
        """The answer, what an observer learns over time, what to do next."""
        claim, window = self.frozen.claim, _every(self.frozen.window)
        sensors, every = counted(len(self.frozen.ids), "sensor"), _every(self.frozen.schedule.period_ms / 1000)
        zones = ", ".join(zone.label for zone in self.site.zones)
        yield f"{self.site.name}: {sensors}, a report every {every}; {zones}"
        yield ""
        what = f"whether one person is there, when, and in which zone, in any {window}"
        seen = f"is hidden from anyone who sees all sensors: epsilon {claim.epsilon:g}, delta {claim.delta:g}"
        yield Labelled("Guarantee", f"{what}, {seen}")
        yield Labelled("Not hidden", "the habits of someone who comes again and again (below)")
        yield Labelled("Accuracy", f"{rounded_down(100 * self.site.flip.truth, 4)} % of reports are true")
        yield ""
        spans = self.guarantee.over_time[: None if self.details else SHOWN_SPANS]
        cells = ((f"  {span.time}", rounded_up(span.epsilon, 3), f"{span.readings:,}") for span in spans)
        yield Table.of((KEEPS, "epsilon", "reports of a sensor"), cells)
        if self.details:
            yield ""
            yield str(self.guarantee.explanation)
            yield from (f"  - {sentence}" for sentence in self.site.assumptions)
        yield from _ending(self.path, (), written=self.written)


def _ending(path: Path, advice: tuple[Advice, ...], *, written: bool) -> Iterator[Row]:
    """Warnings, each with the line to change, and what to do next."""
    if advice:
        text = path.read_text(encoding="utf-8")
        yield ""
        yield from (Labelled("WARNING", f"line {locate(text, each.key)}: {each}") for each in advice)
    site, frozen = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".plan.json")))
    following = f"cloakwork plan {site} --details | --sweep | --out {frozen}"
    if written:
        following = f"cloakwork keys new {site}, then cloakwork provision {site} --all --keys keys.json"
    yield ""
    yield Labelled("Next", following)


def _every(seconds: float) -> str:
    """Return a duration after "every" or "any": a minute is just "minute"."""
    return "second" if seconds == 1 else duration(seconds).removeprefix("1 ")
