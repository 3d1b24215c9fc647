"""`cloakwork sheet`: a page for tenants, from the plan: what is measured, what is hidden, from whom, for how long.

Its texts are in `sheet_texts.toml`, its figures those of the plan.
"""

import math
import tomllib
from collections.abc import Iterable
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
from cloakwork.site import BitPlan, BitSite, Plan, Site, clock_ms, load_any_site, plan_beside

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("sheet_texts.toml").read_text("utf-8"))
PAGE = Template(Path(__file__).with_name("sheet.html").read_text("utf-8"))
SPANS = {"day": 86_400, "year": 365 * 86_400}
SIZES = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0), ("ms", 0.001))


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
    site, file, texts = load_any_site(path), plan or plan_beside(path), TEXTS[language]
    frozen = checked_plan(site, path, file)
    with working("computing what the plan hides"):
        fields = _fields(site, frozen, file, texts)
    plain = {key: escape(text) for key, text in texts.items() if isinstance(text, str)}
    people = {"key_holder": escape(key_holder or texts["blank"]), "contact": escape(contact or texts["blank"])}
    with written(out) as target:
        target.write(PAGE.substitute(plain | fields | people | {"language": language}))
    note(f"wrote {out}")


def _fields(site: Site | BitSite, plan: Plan | BitPlan, file: Path, texts: dict[str, Any]) -> dict[str, str]:
    """What depends on the site, as HTML."""
    window, sensors, unit = site.window, len(plan.ids), ""
    longer = {texts[name]: plan.schedule.most(clock_ms(seconds)) for name, seconds in SPANS.items() if seconds > window}
    spans = {_duration(window, texts): plan.schedule.allowed} | longer
    values: dict[str, object] = {
        "site": site.name,
        "plan": plan.id,
        "sensors": sensors,
        "period": _duration(plan.schedule.period_ms / 1000, texts),
        "window": _duration(window, texts),
    }
    if isinstance(site, BitSite):
        guarantee, kind = Guarantee.of_flip(site.flip, spans=spans), "bits_"
        wrong = _decimal(f"{math.floor(1000 * site.flip.other) / 10:g}", texts)
        values |= {"wrong": wrong, "shared": site.flip.sensors}
        hidden, shown, assumed = ["bits_hidden"], [], ["bits_assumed"]
    else:
        assert isinstance(plan, Plan)  # noqa: S101 - it fits a site of readings
        cloak, kind = plan.cloak(site, file=file), ""
        guarantee = Guarantee.of(cloak, spans=spans, sensor_names=site.sensor_ids)
        unit, of_scope = cloak.physics.length_unit, "_sensor" if cloak.scope is Scope.SENSOR else ""
        centimetres = unit == "m" and cloak.alpha < 1
        length = f"{100 * cloak.alpha:.3g} cm" if centimetres else f"{cloak.alpha:g} {unit}".rstrip()
        values |= {"unit": f" ({site.unit})" if site.unit else "", "alpha": _decimal(length, texts)}
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

    heads = [escape(head.format(**values)) for head in texts[f"{kind}time_heads"]]
    rows = [list(map(escape, _cells(span, unit, texts)))[: len(heads)] for span in guarantee.over_time]
    return {
        "intro": text("intro"),
        "measured": text(f"{kind}measured"),
        "hidden": _tagged("p", map(text, hidden)),
        "shown": _tagged("li", [*map(escape, texts[f"{kind}shown"]), *map(text, shown)]),
        "table": _tagged("table", [_tagged("tr", [_tagged("th", heads), *(_tagged("td", row) for row in rows)])]),
        "note": text(f"{kind}time_note"),
        "assumed": " ".join(map(text, assumed)),
    }


def _tagged(tag: str, parts: Iterable[str]) -> str:
    return "\n".join(f"<{tag}>{part}</{tag}>" for part in parts)


def _cells(span: Exposure, unit: str, texts: dict[str, Any]) -> tuple[str, str, str]:
    """A time, how often the best test is right that sees all sensors, and to what it locates someone."""
    right = _decimal(f"{rounded_up(100 * span.best_test_accuracy, 3)} %", texts)
    if span.std is None:
        return span.time, right, str(texts["unknown"])
    if unit == "m" and span.std < 0.1:
        return span.time, right, f"{100 * span.std:.1g} cm" if span.std > 0.01 else "< 1 cm"
    return span.time, right, _decimal(f"{span.std:.2g} {unit}".rstrip(), texts)


def _decimal(number: str, texts: dict[str, Any]) -> str:
    return number.replace(".", texts["decimal"])


def _of_number(text: str | list[str], count: float) -> str:
    """The text about one thing or about several, where there are two."""
    return text if isinstance(text, str) else text[count != 1]


def _duration(seconds: float, texts: dict[str, Any]) -> str:
    """A duration in the largest unit of which it is about one or more."""
    unit, size = next((one for one in SIZES if seconds > 0.95 * one[1]), SIZES[-1])
    number = f"{seconds / size:.3g}"
    return _of_number(texts["units"][unit], float(number)).format(n=_decimal(number, texts))
