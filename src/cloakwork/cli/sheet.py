"""`cloakwork sheet`: a page for tenants, from the plan: what is measured, what is hidden, from whom, for how long."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from cloakwork._checks import rounded_up
from cloakwork.cli.arguments import PlanFile, SiteFile
from cloakwork.cli.output import note, working, written
from cloakwork.errors import InputError
from cloakwork.privacy import Cloak, Exposure, Guarantee, Scope
from cloakwork.site import BitSite, FrozenPlan, Plan, Site, clock_ms, load_any_plan, load_any_site, plan_beside

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("sheet_texts.toml").read_text("utf-8"))
HIDDEN = {Scope.NETWORK: "hidden", Scope.SENSOR: "hidden_sensor"}
SPANS = {"minute": 60, "day": 86_400, "year": 365 * 86_400}
PAGE = Template(Path(__file__).with_name("sheet.html").read_text("utf-8"))


def sheet(
    path: SiteFile,
    out: Annotated[Path, typer.Option("--out", help="Page to write, .html: a browser prints it on one sheet.")],
    language: Annotated[str, typer.Option(help=f"Language of the page: {', '.join(TEXTS)}.")] = "en",
    key_holder: Annotated[str, typer.Option(help="Who holds the keys, or 'no one'; else a blank line.")] = "",
    contact: Annotated[str, typer.Option(help="Whom tenants can ask; else a blank line.")] = "",
    plan: PlanFile = None,
) -> None:
    """Write the page."""
    if language not in TEXTS:
        raise InputError(f"--language {language}: there are {', '.join(TEXTS)}.", language=language)
    if out.suffix.lower() != ".html":
        raise InputError(f"--out {out}: give a name that ends in .html; any browser prints it.", path=str(out))
    site, file = load_any_site(path), plan or plan_beside(path)
    if not file.is_file():
        raise InputError(
            f"{path} has no plan beside it. A sheet describes a frozen plan: write that first.", path=str(path)
        )
    frozen = load_any_plan(file)
    with working("computing what the plan hides"):
        frozen.check(site, file=file)
        if isinstance(site, BitSite):
            sections = _bit_sections(site, frozen, TEXTS[language])
        else:
            assert isinstance(frozen, Plan)  # noqa: S101 - it fits a site of readings
            sections = _sections(site, frozen, frozen.cloak(site, file=file), TEXTS[language])
    with written(out, path, file) as target:
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


def _sections(site: Site, plan: Plan, cloak: Cloak, texts: dict[str, Any]) -> _Sections:
    """The sections of a site of readings."""
    window, sensors = site.spec.privacy.window, cloak.physics.sensors
    spans = _spans(window, cloak.readings_per_window, plan, texts)
    guarantee = Guarantee.of(cloak, spans=spans, sensor_names=site.sensor_ids)
    alpha = guarantee["alpha"]
    values: dict[str, object] = {
        "site": site.name,
        "plan": plan.id,
        "sensors": sensors,
        "unit": f" ({site.unit})" if site.unit else "",
        "period": _duration(plan.schedule.period_ms / 1000, texts),
        "window": _duration(window, texts),
        "alpha": _decimal(_length(alpha.value, alpha.unit), texts),
        "right": _decimal(guarantee["best_test_accuracy"].shown, texts),
    }
    if cloak.stay is not None and site.spec.privacy.stay is not None:
        values["stay"] = _duration(site.spec.privacy.stay.length, texts)
        values["stay_right"] = _decimal(guarantee["stay_best_test_accuracy"].shown, texts)

    def text(key: str) -> str:
        return escape(_of_number(texts[key], sensors).format(**values))

    keys = [HIDDEN[cloak.scope]]
    if cloak.stay is not None:
        keys.append("hidden_stay" if cloak.scope is Scope.NETWORK else "hidden_stay_sensor")
    assumed = ["assumed"]
    if site.spec.sources.kind == "lasting":
        assumed.append("lingering_covered" if site.spec.physics.tolerance.memory else "lingering")
    return _Sections(
        intro=text("intro"),
        measured=text("measured"),
        hidden=[text(key) for key in keys],
        shown=[*map(escape, texts["shown"]), text("shown_long_stay" if cloak.stay else "shown_stay")],
        heads=[head.format(**values) for head in texts["time_heads"]],
        rows=[(span.time, _right(span, texts), _located(span, alpha.unit, texts)) for span in guarantee.over_time],
        note=text("time_note"),
        assumed=" ".join(map(text, assumed)),
    )


def _bit_sections(site: BitSite, plan: FrozenPlan, texts: dict[str, Any]) -> _Sections:
    """The sections of a site of bits."""
    flip, window, sensors = site.flip, site.spec.bits.window, len(site.sensor_ids)
    guarantee = Guarantee.of_flip(flip, spans=_spans(window, flip.readings_per_window, plan, texts))
    values: dict[str, object] = {
        "site": site.name,
        "plan": plan.id,
        "sensors": sensors,
        "period": _duration(plan.schedule.period_ms / 1000, texts),
        "window": _duration(window, texts),
        "wrong": _decimal(f"{math.floor(1000 * flip.other) / 10:g}", texts),
        "right": _decimal(guarantee["best_test_accuracy"].shown, texts),
        "shared": flip.sensors,
    }

    def text(key: str) -> str:
        return escape(_of_number(texts[key], sensors).format(**values))

    return _Sections(
        intro=text("intro"),
        measured=text("bits_measured"),
        hidden=[text("bits_hidden")],
        shown=[escape(line) for line in texts["bits_shown"]],
        heads=texts["bits_time_heads"],
        rows=[(span.time, _right(span, texts)) for span in guarantee.over_time],
        note=text("bits_time_note"),
        assumed=text("bits_assumed"),
    )


def _spans(window: float, within: int, plan: FrozenPlan, texts: dict[str, Any]) -> dict[str, int]:
    """The most readings of a sensor in a minute, the window, a day and a year."""
    spans = [(window, _duration(window, texts), within)]
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
