"""`cloakwork sheet`: a page for tenants, from the plan: what is measured, what is hidden, from whom, for how long."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated, Any

from cloakwork._checks import rounded_up
from cloakwork.cli.arguments import PAGES, PlanFile, PlannedSite, option, writes
from cloakwork.cli.files import written
from cloakwork.cli.output import note, working
from cloakwork.cli.planned_noise import checked_plan
from cloakwork.errors import InputError
from cloakwork.privacy import Exposure, Guarantee, Scope
from cloakwork.site import BitPlan, BitSite, FrozenPlan, Plan, Site, clock_ms, load_any_site, plan_beside

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("sheet_texts.toml").read_text("utf-8"))
HIDDEN = {Scope.NETWORK: "", Scope.SENSOR: "_sensor"}
SPANS = {"minute": 60, "day": 86_400, "year": 365 * 86_400}
PAGE = Template(Path(__file__).with_name("sheet.html").read_text("utf-8"))


def sheet(
    path: PlannedSite,
    out: Annotated[
        Path, option("Page to write, .html: a browser prints it on one sheet.", "--out", callback=writes(*PAGES))
    ],
    language: Annotated[str, option(f"Language of the page: {', '.join(TEXTS)}.")] = "en",
    key_holder: Annotated[str, option("Who holds the keys, or 'no one'; else a blank line.")] = "",
    contact: Annotated[str, option("Whom tenants can ask; else a blank line.")] = "",
    plan: PlanFile = None,
) -> None:
    """Write the page."""
    if language not in TEXTS:
        raise InputError(f"--language {language}: there are {', '.join(TEXTS)}.", language=language)
    site, file = load_any_site(path), plan or plan_beside(path)
    frozen = checked_plan(site, path, file)
    with working("computing what the plan hides"):
        sections = _sections(site, frozen, file, TEXTS[language])
    with written(out) as target:
        target.write(tenants_page(sections, language, key_holder, contact))
    note(f"wrote {out}")


@dataclass(frozen=True)
class _Sections:
    """What a sheet says that depends on the kind of the site, as escaped texts and rows of its table."""

    intro: str
    measured: str
    hidden: Sequence[str]
    shown: Sequence[str]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    assumed: str


def _sections(site: Site | BitSite, plan: Plan | BitPlan, file: Path, texts: dict[str, Any]) -> _Sections:
    """The sections of a site of readings or of bits."""
    sensors, window = len(plan.ids), site.window
    spans, unit = _spans(window, plan, texts), ""
    values: dict[str, object] = {
        "site": site.name,
        "plan": plan.id,
        "sensors": sensors,
        "period": _duration(plan.schedule.period_ms / 1000, texts),
        "window": _duration(window, texts),
    }
    if isinstance(site, BitSite):
        guarantee, kind = Guarantee.of_flip(site.flip, spans=spans), "bits_"
        values |= {
            "wrong": _decimal(f"{math.floor(1000 * site.flip.other) / 10:g}", texts),
            "shared": site.flip.sensors,
        }
        hidden, shown, assumed = ["bits_hidden"], [], ["bits_assumed"]
    else:
        assert isinstance(plan, Plan)  # noqa: S101 - it fits a site of readings
        cloak, kind = plan.cloak(site, file=file), ""
        guarantee = Guarantee.of(cloak, spans=spans, sensor_names=site.sensor_ids)
        unit, of_scope = cloak.physics.length_unit, HIDDEN[cloak.scope]
        values |= {"unit": f" ({site.unit})" if site.unit else "", "alpha": _decimal(_length(cloak.alpha, unit), texts)}
        hidden, shown, assumed = [f"hidden{of_scope}"], ["shown_stay"], ["assumed"]
        if site.spec.privacy.stay is not None:
            values["stay"] = _duration(site.spec.privacy.stay.length, texts)
            values["stay_right"] = _decimal(guarantee.stay_best_test, texts)
            hidden, shown = [*hidden, f"hidden_stay{of_scope}"], ["shown_long_stay"]
        if site.spec.sources.kind == "lasting":
            assumed.append("lingering_covered" if site.spec.physics.tolerance.memory else "lingering")
    values["right"] = _decimal(guarantee.best_test, texts)

    def text(key: str) -> str:
        return escape(_of_number(texts[key], sensors).format(**values))

    located = ([] if kind else [_located(span, unit, texts)] for span in guarantee.over_time)
    return _Sections(
        intro=text("intro"),
        measured=text(f"{kind}measured"),
        hidden=[text(key) for key in hidden],
        shown=[*map(escape, texts[f"{kind}shown"]), *map(text, shown)],
        heads=[head.format(**values) for head in texts[f"{kind}time_heads"]],
        rows=[(s.time, _right(s, texts), *more) for s, more in zip(guarantee.over_time, located, strict=True)],
        note=text(f"{kind}time_note"),
        assumed=" ".join(map(text, assumed)),
    )


def _spans(window: float, plan: FrozenPlan, texts: dict[str, Any]) -> dict[str, int]:
    """The most readings of a sensor in a minute, the window, a day and a year."""
    spans = [(window, _duration(window, texts), plan.schedule.allowed)]
    spans += [
        (s, texts[name], plan.schedule.most(clock_ms(s)))
        for name, s in SPANS.items()
        if s > window or (name == "minute" and s < window)
    ]
    return {name: count for _, name, count in sorted(spans)}


def tenants_page(sections: _Sections, language: str, key_holder: str, contact: str) -> str:
    """The sheet as HTML, on one page of A4 when printed."""
    texts = TEXTS[language]
    plain = {key: escape(text) for key, text in texts.items() if isinstance(text, str)}
    blank = {"key_holder": escape(key_holder or texts["blank"]), "contact": escape(contact or texts["blank"])}
    listed = {
        "hidden": "\n".join(f"<p>{text}</p>" for text in sections.hidden),
        "shown": "\n".join(f"<li>{line}</li>" for line in sections.shown),
        "table": _table(sections.heads, sections.rows),
    }
    return PAGE.substitute(plain | vars(sections) | listed | blank | {"language": language})


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _right(span: Exposure, texts: dict[str, Any]) -> str:
    """How often the best test is right that sees all sensors."""
    return _decimal(f"{rounded_up(100 * span.best_test_accuracy, 3)} %", texts)


def _decimal(number: str, texts: dict[str, Any]) -> str:
    return number.replace(".", texts["decimal"])


def _of_number(text: str | list[str], count: float) -> str:
    """The text about one thing or about several, where there are two."""
    return text if isinstance(text, str) else text[count != 1]


def _located(span: Exposure, unit: str, texts: dict[str, Any]) -> str:
    if span.std is None:
        return str(texts["unknown"])
    if unit == "m" and span.std < 0.1:
        return f"{100 * span.std:.1g} cm" if span.std > 0.01 else "< 1 cm"
    return _decimal(f"{span.std:.2g} {unit}".rstrip(), texts)


def _length(value: float, unit: str) -> str:
    return f"{100 * value:.3g} cm" if unit == "m" and value < 1 else f"{value:g} {unit}".rstrip()


def _duration(seconds: float, texts: dict[str, Any]) -> str:
    """A duration in the largest unit of which it is about one or more."""
    sizes = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0), ("ms", 0.001))
    unit, size = next((one for one in sizes if seconds > 0.95 * one[1]), sizes[-1])
    number = f"{seconds / size:.3g}"
    return _of_number(texts["units"][unit], float(number)).format(n=_decimal(number, texts))
