"""`cloakwork sheet`: a page for tenants, from the plan: what is measured, what is hidden, from whom, for how long."""

import math
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakwork._checks import rounded_up
from cloakwork.cli.arguments import PlanFile, SiteFile
from cloakwork.cli.output import note, part_of, written
from cloakwork.cli.planned_accuracy import unit_of_length, window_limits
from cloakwork.cli.planned_noise import planned_noise
from cloakwork.errors import InputError
from cloakwork.privacy import Cloak, LaplaceProfile, Profile, Scope
from cloakwork.site import Plan, Site, clock_ms, load_site

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("sheet_texts.toml").read_text("utf-8"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PRINTING_S = 120
HIDDEN = {Scope.NETWORK: "hidden", Scope.SENSOR: "hidden_sensor"}
SPANS = {"minute": 60, "day": 86_400, "year": 365 * 86_400}
STYLE = """
@page { size: A4; margin: 13mm 18mm }
body { font: 11pt/1.38 system-ui, sans-serif; max-width: 174mm; margin: 1em auto; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 17pt; margin: 0 0 .3em } h2 { font-size: 11.5pt; margin: .9em 0 .15em; color: #24505e }
p, ul { margin: .2em 0 } li { margin: .1em 0 }
table { border-collapse: collapse; margin: .3em 0; width: calc(100% - 1px) }
th, td { border: 1px solid #b9c4c8; padding: .25em .5em; text-align: left } th { background: #eef3f4; font-weight: 600 }
td:first-child { white-space: nowrap }
.own { border-bottom: 1px solid #888; min-height: 1.4em; padding: .1em 0 } small { color: #444; line-height: 1 }
@media print { body { margin: 0; padding: 0; font-size: 9.4pt; line-height: 1.28 } }
"""


def sheet(
    path: SiteFile,
    out: Annotated[Path, typer.Option("--out", help="Page to write: .html, or .pdf where Chromium is installed.")],
    language: Annotated[str, typer.Option(help=f"Language of the page: {', '.join(TEXTS)}.")] = "en",
    key_holder: Annotated[str, typer.Option(help="Who holds the keys, or 'no one'; else a blank line.")] = "",
    contact: Annotated[str, typer.Option(help="Whom tenants can ask; else a blank line.")] = "",
    plan: PlanFile = None,
) -> None:
    """Write the page."""
    if language not in TEXTS:
        raise InputError(f"--language {language}: there are {', '.join(TEXTS)}.", language=language)
    if out.suffix.lower() not in {".html", ".pdf"}:
        raise InputError(f"--out {out}: give a name that ends in .html or .pdf.", path=str(out))
    site = load_site(path)
    noise = planned_noise(site, path, plan)
    if noise.plan is None:
        raise InputError(
            f"{path} has no plan beside it. A sheet describes a frozen plan: write that first.", path=str(path)
        )
    page = tenants_page(site, noise.plan, noise.cloak, language, key_holder, contact)
    if out.suffix.lower() == ".pdf":
        _print(page, out)
    else:
        with written(out, path, *noise.files) as file:
            file.write(page)
    note(f"wrote {out}")


def tenants_page(site: Site, plan: Plan, cloak: Cloak, language: str, key_holder: str, contact: str) -> str:
    """The sheet as HTML, on one page of A4 when printed."""
    texts = TEXTS[language]
    window, length = site.spec.privacy.window, unit_of_length(cloak.physics)
    alpha = f"{100 * cloak.alpha:.3g} cm" if length == "m" and cloak.alpha < 1 else f"{cloak.alpha:g} {length}".strip()
    counts = {"measured": cloak.physics.sensors, "bits": len(site.binary_ids)}
    values: dict[str, object] = {
        "site": site.name,
        "plan": plan.id,
        "sensors": counts["measured"],
        "unit": f" ({site.unit})" if site.unit else "",
        "period": _duration(plan.schedule.period_ms / 1000, texts),
        "window": _duration(window, texts),
        "alpha": _decimal(alpha, texts),
        "right": _percent(cloak.over(cloak.readings_per_window), texts),
        "bits": counts["bits"],
        "wrong": "" if site.flip is None else _decimal(f"{math.floor(1000 * site.flip.other) / 10:g}", texts),
    }
    if cloak.stay is not None and site.spec.privacy.stay is not None:
        values["stay"] = _duration(site.spec.privacy.stay.length, texts)
        values["stay_right"] = _percent(Profile(cloak.stay_mu(cloak.stay.readings)), texts)

    def text(key: str) -> str:
        return escape(_of_number(texts[key], counts.get(key, 2)).format(**values))

    def part(key: str, *body: str) -> str:
        return f"<h2>{text(f'{key}_title')}</h2>\n" + "\n".join(body)

    spans = [(window, values["window"], cloak.readings_per_window)]
    spans += [
        (s, texts[name], plan.schedule.most(clock_ms(s)))
        for name, s in SPANS.items()
        if s > window or (name == "minute" and s < window)
    ]
    rows = [
        (str(name), f"{_right(cloak, count, texts)} %", _located(cloak, count, texts))
        for _, name, count in sorted(spans)
    ]
    heads = [head.format(**values) for head in texts["time_heads"]]
    keys = [HIDDEN[cloak.scope]]
    if cloak.stay is not None:
        keys.append("hidden_stay" if cloak.scope is Scope.NETWORK else "hidden_stay_few")
    keys += ["bits_apart"] if site.binary_ids else []
    assumed = ["assumed"]
    if site.spec.sources.kind == "lasting":
        assumed.append("lingering_covered" if site.spec.physics.tolerance.memory else "lingering")
    shown = [*map(escape, texts["shown"]), text("shown_long_stay" if cloak.stay else "shown_stay")]
    return "\n".join(
        (
            f'<!doctype html>\n<html lang="{language}">\n<meta charset="utf-8">',
            f'<meta name="viewport" content="width=device-width"><title>{text("title")}</title><style>{STYLE}</style>',
            f"<h1>{text('title')}</h1>\n<p>{text('intro')}</p>",
            part("measured", f"<p>{text('measured')}{' ' + text('bits') if site.binary_ids else ''}</p>"),
            part("hidden", *(f"<p>{text(key)}</p>" for key in keys)),
            part("shown", "<ul>", *(f"<li>{line}</li>" for line in shown), "</ul>"),
            part("time", _table(heads, rows), f"<p><small>{text('time_note')}</small></p>"),
            part("keys", f'<p>{text("keys")}</p>\n<div class="own">{escape(key_holder) or text("blank")}</div>'),
            part("ask", f'<p>{text("ask")}</p>\n<div class="own">{escape(contact) or text("blank")}</div>'),
            f"<p><small>{' '.join(map(text, assumed))}</small></p>\n</html>\n",
        )
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _right(cloak: Cloak, readings: int, texts: dict[str, Any]) -> str:
    """How often the best test between staying and moving is right from so many frames, in percent, rounded up.

    It sees all sensors. A claim about one of them holds for each, and these add up.
    """
    return _percent(cloak.over(readings * cloak.observers), texts)


def _percent(profile: Profile | LaplaceProfile, texts: dict[str, Any]) -> str:
    return _decimal(rounded_up(100 * profile.right, 3), texts)


def _decimal(number: str, texts: dict[str, Any]) -> str:
    return number.replace(".", texts["decimal"])


def _of_number(text: str | list[str], count: float) -> str:
    """The text about one thing or about several, where there are two."""
    return text if isinstance(text, str) else text[count != 1]


def _located(cloak: Cloak, readings: int, texts: dict[str, Any]) -> str:
    bounds, unit = window_limits(cloak), unit_of_length(cloak.physics)
    if bounds is None:
        return str(texts["unknown"])
    std = bounds.typical_std * math.sqrt(cloak.readings_per_window / readings)
    if unit == "m" and std < 0.1:
        return f"{100 * std:.1g} cm" if std > 0.01 else "< 1 cm"
    return _decimal(f"{std:.2g} {unit}".strip(), texts)


def _duration(seconds: float, texts: dict[str, Any]) -> str:
    """A duration in the largest unit of which it is about one or more."""
    sizes = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0), ("ms", 0.001))
    unit, size = next((one for one in sizes if seconds > 0.95 * one[1]), sizes[-1])
    number = f"{seconds / size:.3g}"
    return _of_number(texts["units"][unit], float(number)).format(n=_decimal(number, texts))


def _print(page: str, out: Path) -> None:
    """Print a page to PDF with a browser: every other way would be a library as large."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError(f"--out {out}: this needs Chromium. Write an .html file, and print that from any browser.")
    with tempfile.TemporaryDirectory() as folder, part_of(out) as part:
        source = Path(folder) / "sheet.html"
        source.write_text(page, encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--no-pdf-header-footer", f"--user-data-dir={folder}/profile")
        command = [browser, *options, f"--print-to-pdf={part}", source.as_uri()]
        done = subprocess.run(command, capture_output=True, check=False, timeout=PRINTING_S)  # noqa: S603 - a browser, our page
        if done.returncode or not part.is_file():
            raise InputError(f"--out {out}: Chromium could not print it. Write an .html file, and print that.")
