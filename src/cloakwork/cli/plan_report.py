"""The reports of `cloakwork plan`: an answer of at most 18 lines, or every figure."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import duration, rounded_down, rounded_up, spread_of
from cloakwork.accuracy import Limits
from cloakwork.cli.output import check_picture, counted, refuse_unwritable, working
from cloakwork.cli.planned_noise import planning, refuse_impossible, write_plan
from cloakwork.cli.report import Labelled, Row, Table, length, render, section
from cloakwork.errors import InputError
from cloakwork.physics import Nuisance
from cloakwork.privacy import Cloak, Design, Exposure, Guarantee, Scope
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
IN_READINGS = {"sigma", "sensitivity"}  # figures of a guarantee in the unit of the readings
CLAIMED = ("sensitivity", "sigma", "epsilon", "delta", "alpha")
HARDWARE = ("step", "resolution", "noise_floor", "rests_on_noise_floor", "resolution_cost")
KEEPS = "Someone keeps readings for"
CAVEAT = (
    "An epsilon above 10 hides little. The right cell and the error are what the best method reaches with all sensors "
    "against a lone source that stays where it is; someone who knows its habits does better."
)


def check_outputs(site: Site | BitSite, path: Path, picture: Path | None) -> None:
    """Refuse numbers that cannot be meant, and a picture that cannot be written or has nothing to show."""
    refuse_impossible(site, path, noting=False)
    if picture is not None:
        if isinstance(site, BitSite):
            raise InputError("--picture: a site of bits has no floor to draw. Leave --picture out.")
        check_picture(picture)
        refuse_unwritable("--picture", picture, path, *site.files.values())


def plan_bits(site: BitSite, path: Path, out: Path | None, *, details: bool, json: bool) -> None:
    """Plan a site of bits."""
    bits = freeze_bits(site)
    if out is not None:
        write_plan(bits, out, path)
    render(BitsReport(site, bits, path, details, out is not None), json=json)


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
        report = PlanReport.of(site, cloak, frozen, path, details=details, written=out is not None)
    if out is not None:
        write_plan(frozen, out, path, *site.files.values())
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

    @classmethod
    def of(cls, site: Site, cloak: Cloak, frozen: Plan, path: Path, *, details: bool, written: bool) -> "PlanReport":
        """Compute the figures; some seconds."""
        return cls(
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
            written,
        )

    def as_dict(self) -> Mapping[str, Any]:
        """The plan as plain values."""
        site, cloak, report = self.site, self.cloak, self.cloak.design_report
        return {
            "site": site.name,
            "plan": self.frozen.digest,
            "unit": site.spec.unit,
            **{name: getattr(cloak, name) for name in CLAIMED},
            "scope": str(cloak.scope),
            "noise": str(cloak.noise),
            **{name: getattr(cloak.physics, name) for name in ("places", "sensors", "rank")},
            **{name: getattr(cloak, name) for name in HARDWARE},
            "timing": cloak.family.timing,
            "timing_cost": cloak.timing_cost,
            "window_seconds": site.spec.privacy.window,
            "readings_per_window": cloak.readings_per_window,
            "schedule": self.frozen.schedule,
            "noise_tables": self.frozen.tables,
            "mu": cloak.profile.mu,
            "design": {"kind": str(cloak.design), **asdict(report)},
            "stay": _stay_values(cloak),
            "noticed": self.detected,
            "drift": self.drift,
            "limits": None if self.bounds is None else self._limit_values(self.bounds),
            "estimator": self._estimator,
            "forecast": self.frozen.forecast,
            "max_count": site.spec.sources.max_count,
            "over_time": self.guarantee.over_time,
            "left_open": list(map(str, site.left_open)),
            "model_set": cloak.family.tolerance.sentences(),
            "explanation": self.guarantee.explain(),
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
        yield over_time(self.site, self.guarantee, details=self.details)
        if self.details:
            yield CAVEAT
            yield from self._every_figure()
        yield from _ending(self.path, self.advice, written=self.written)

    @property
    def _estimator(self) -> str:
        choice = self.site.estimator()
        return f"{type(choice.estimator).__name__}: {choice.reason}"

    def _limit_values(self, bounds: Limits) -> dict[str, object]:
        numbers = {name: value for name, value in asdict(bounds).items() if isinstance(value, float)}
        return {**numbers, "method": str(bounds.method), "sentences": bounds.sentences(self.site.length_unit)}

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
        cloak, site, physics, said = self.cloak, self.site, self.cloak.physics, self.guarantee.explain()
        unit = f" {site.unit}".rstrip()
        yield from section("What is hidden, and from whom", _listed(said.hidden))
        yield from section("What is not hidden", _listed(said.not_hidden))
        model = [
            ("Numerical rank", f"{physics.rank}"),
            ("Largest reading of one source", f"{physics.peak:.4g}{unit}"),
            ("Step of the hardware", "none" if site.resolutions is None else spread_of(site.resolutions) + unit),
        ]
        if site.noise_floors is not None:
            model.append(("Noise floor of the sensors, at least", spread_of(site.noise_floors) + unit))
        yield from section("Model and sensors", _pairs(model))
        costs = ((each.label, each.text + (unit if each.name in IN_READINGS else "")) for each in self.guarantee.cost)
        noise = [
            ("Distribution of the noise", cloak.noise.title()),
            *costs,
            *_stay_rows(cloak, unit),
            ("Step in which readings are sent", spread_of(cloak.steps) + unit),
            ("Readings allowed in a window", f"{cloak.readings_per_window:,}"),
            ("Noise table on a device", _sizes(self.frozen)),
        ]
        yield from section("Noise", _pairs(noise))
        yield from section("What drives the noise", _listed(said.drivers))
        yield from section("Accuracy for a lone source", self._accuracy())

    def _accuracy(self) -> Iterator[Row]:
        yield Labelled("  Frames that detect it", f"{100 * self.detected:.0f} %")
        if self.drift is not None:
            yield Labelled("  With the stated drift", f"{100 * self.drift.noticed:.0f} %")
            if self.drift.average_emd is not None:
                least = length(self.drift.average_emd, self.site.length_unit, lower=True)
                yield Labelled("  Mean error of one window with the drift, at least", least)
        yield self._design()
        yield from _listed((f"Recovery will use {self._estimator}.",))

    def _design(self) -> Table:
        """How well one window locates a lone source with equal noise and with the plan's."""
        cloak, report, drift = self.cloak, self.cloak.design_report, self.cloak.allowance.drift
        errors = (report.equal_vicinity, report.equal_variance), (report.vicinity, report.variance)
        sigmas = cloak.allowance.equal().sigma, cloak.sigmas
        equal, own = ((spread_of(s), *(f"{value:.3g}" for value in e)) for s, e in zip(sigmas, errors, strict=True))
        title = "one window, along one axis (Cramer-Rao)"
        if drift:
            title += ", with the drift" + (" as learnt" if isinstance(drift, Nuisance) else "")
        names = ("noise of a reading, sigma", "standard deviation in a typical cell", "mean variance over all cells")
        columns = zip(names, equal, own if cloak.design is not Design.EQUAL else ("", "", ""), strict=True)
        return Table.of((f"  {title}", "equal noise", "this plan"), [(f"  {name}", *row) for name, *row in columns])


def answer(site: Site, cloak: Cloak, guarantee: Guarantee) -> Iterator[Labelled]:
    """What is promised to whom, and what is not hidden."""
    alone = cloak.scope is Scope.SENSOR
    move, window = length(cloak.alpha, site.length_unit), _every(site.spec.privacy.window)
    seen = "one sensor" if alone else "all sensors"
    claim = f"a move of up to {move} in any {window} is hidden from anyone who sees {seen}"
    yield Labelled("Guarantee", f"{claim}: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}")
    guess = guarantee["best_test_accuracy"].text
    yield Labelled("", f'the best guess at "did it move?" is right in at most {guess} of cases (coin: 50 %)')
    stay = site.spec.privacy.stay
    others = "what several sensors show together; " if alone else ""
    what = "presence, number, room" if site.length_unit else "presence and number"
    stays = "where someone stays for hours (below)"
    if stay is not None and cloak.stay is not None:
        guess = guarantee["stay_best_test_accuracy"].text
        stays = f"where someone stays for more than {duration(stay.length)}"
        claim = f"epsilon {stay.epsilon:g}, delta {stay.delta:g}; right in at most {guess}"
        yield Labelled("", f"a seat, within {move}, over {duration(stay.length)}: {claim}")
    yield Labelled("Not hidden", f"{others}{what}; {stays}")


def over_time(site: Site, guarantee: Guarantee, *, details: bool = False) -> Table:
    """What an observer learns who keeps all readings."""

    def cells(span: Exposure) -> Iterator[str]:
        yield f"  {span.time}"
        for epsilon in (span.epsilon, span.together, span.stay):
            yield "" if epsilon is None else rounded_up(epsilon, 3)
        yield "" if span.right_place is None else _share(span.right_place)
        mean, std = span.mean_distance, span.std
        yield "" if mean is None else length(mean, site.length_unit, lower=True)
        yield f"{span.readings:,}" if details else ""
        yield length(std, site.length_unit, lower=True) if details and std is not None else ""

    heads = (KEEPS, "epsilon", "epsilon, all sensors", "epsilon, stay", "right cell", "mean error", "readings", "std")
    return Table.of(heads, map(tuple, map(cells, guarantee.over_time[: None if details else SHOWN_SPANS])))


@dataclass(frozen=True, eq=False)
class BitsReport:
    """The plan of a site of bits."""

    site: BitSite
    frozen: BitPlan
    path: Path
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
            "epsilon": plan.claim.epsilon,
            "delta": plan.claim.delta,
            "shared": plan.claim.shared,
            "window_seconds": plan.window,
            "readings_per_window": plan.claim.readings_per_window,
            "schedule": plan.schedule,
            "each": plan.each,
            "truth": 1 - plan.other,
            "over_time": [
                {key: getattr(span, key) for key in ("time", "readings", "epsilon")} for span in self._over_time
            ],
            "assumptions": list(self.site.assumptions),
        }

    @property
    def _over_time(self) -> tuple[Exposure, ...]:
        return Guarantee.of_flip(self.site.flip, spans=spans_of(self.site)).over_time

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
        yield Labelled("Accuracy", f"{rounded_down(100 * (1 - self.frozen.other), 4)} % of reports are true")
        yield ""
        spans = self._over_time[: None if self.details else SHOWN_SPANS]
        cells = ((f"  {span.time}", rounded_up(span.epsilon, 3), f"{span.readings:,}") for span in spans)
        yield Table.of((KEEPS, "epsilon", "reports of a sensor"), cells)
        if self.details:
            model = [
                ("Sensors that one person changes in a reading, at most", f"{claim.shared:,}"),
                ("Readings allowed in a window", f"{claim.readings_per_window:,}"),
            ]
            yield from section("Model and sensors", _pairs(model))
            yield from section(
                "How bits are hidden", _listed((*str(self.site.flip.explain()).splitlines(), *self.site.assumptions))
            )
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


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[Row]:
    return (Labelled(f"  {name}", value) for name, value in pairs)


def _listed(sentences: tuple[str, ...]) -> Iterator[Row]:
    return (Labelled("  -", sentence) for sentence in sentences)


def _every(seconds: float) -> str:
    """A duration after "every" or "any": a minute is just "minute"."""
    return duration(seconds).removeprefix("1 ")


def _share(value: float) -> str:
    return f"{rounded_up(100 * value, 3)} %"


def _sizes(plan: Plan) -> str:
    sizes = [noise.bytes for noise in plan.tables.values()]
    low, high = min(sizes), max(sizes)
    return f"{high:,} bytes" if low == high else f"{low:,} to {high:,} bytes, by sensor"


def _stay_rows(cloak: Cloak, unit: str) -> list[tuple[str, str]]:
    """The claim for stays, and the slow offsets."""
    if (stay := _stay_values(cloak)) is None:
        return []
    deviations = np.array(stay["deviations"])
    guarantee = f"epsilon {stay['epsilon']:g}, delta {stay['delta']:g}"
    return [
        (f"Guarantee for a stay of {stay['readings']:,} readings", guarantee),
        ("Slow offset of a sensor", spread_of(deviations) + unit),
        ("Time constant of the offsets", duration(stay["time_constant"])),
    ]


def _stay_values(cloak: Cloak) -> dict[str, Any] | None:
    """The claim for stays and its offsets as plain values."""
    if cloak.stay is None or cloak.slow is None or cloak.offsets is None:
        return None
    return {
        **{key: getattr(cloak.stay, key) for key in ("readings", "epsilon", "delta", "period")},
        "mu": cloak.stay_mu(cloak.stay.readings),
        "deviations": cloak.slow.deviations(cloak.steps).tolist(),
        "time_constant": float(cloak.offsets.over[0]),
        "renew": cloak.slow.renew,
    }
