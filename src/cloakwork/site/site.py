"""One installation, as its site file describes it."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import Physics, Tolerance
from cloakwork.privacy import Cloak
from cloakwork.site import schema
from cloakwork.site.build import Built, build
from cloakwork.site.lines import Path as KeyPath
from cloakwork.site.lines import locate
from cloakwork.site.schema import SiteSpec

LARGEST_FILE = 10_000_000
_KINDS = {"line", "plane", "floorplan", "graph", "matrix"}


@dataclass(frozen=True, eq=False)
class Site:
    """A validated site file; the model and the cloak are made when first asked for."""

    spec: SiteSpec
    folder: Path

    @property
    def name(self) -> str:
        """The site's name."""
        return self.spec.name

    @cached_property
    def _built(self) -> Built:
        return build(self.spec, self.folder)

    @property
    def physics(self) -> Physics:
        """How sources become readings here."""
        return self._built.physics

    @property
    def sensor_ids(self) -> tuple[str, ...]:
        """Names of the sensors, in the order of the model's rows."""
        return self._built.ids

    @cached_property
    def baselines(self) -> FloatArray:
        """What each sensor reads with no source near, shape (m,)."""
        if not self.spec.sensor:
            return np.full(self.physics.sensors, self.spec.baseline)
        default = self.spec.baseline
        return np.array([default if s.baseline is None else s.baseline for s in self.spec.sensor])

    @property
    def period_ms(self) -> int:
        """Milliseconds between two readings of one sensor."""
        return max(1, round(1000 * self.spec.privacy.window / self.spec.privacy.readings_per_window))

    def cloak(self) -> Cloak:
        """A new cloak that meets the site's claim, with its budget unspent."""
        claim = self.spec.privacy
        declared = self.spec.physics.tolerance
        return Cloak(
            self.physics,
            epsilon=claim.epsilon,
            delta=claim.delta,
            alpha=claim.alpha,
            scope=claim.scope,
            calibration=claim.calibration,
            resolution=claim.resolution,
            readings_per_window=claim.readings_per_window,
            tolerance=Tolerance(declared.diffusion, declared.gain, declared.position, declared.doors),
        )


def load_site(path: str | Path) -> Site:
    """Read and check a site file; an error names the line, the key, what was given and what is allowed."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise SiteError(f"{file}: larger than {LARGEST_FILE // 10**6} MB; a site file is a page of text.")
        text = file.read_text(encoding="utf-8")
    except OSError as problem:
        raise SiteError(f"{file}: {problem.strerror}. Write an example with: cloakwork init") from None
    except UnicodeDecodeError:
        raise SiteError(f"{file}: not a text file in UTF-8.") from None
    return parse_site(text, name=str(file), folder=file.parent)


def parse_site(text: str, *, name: str = "site", folder: Path | None = None) -> Site:
    """Like `load_site`, from a text."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SiteError(f"{name}: not valid TOML: {problem}") from None
    try:
        site = Site(SiteSpec.model_validate(given), folder or Path())
    except ValidationError as problem:
        raise SiteError(_sentences(problem, text, name)) from None
    try:
        _ = site.physics
    except InputError as problem:
        raise SiteError(f"{name}, line {locate(text, _blame(problem, site.spec))}: {problem}") from None
    return site


def _sentences(problem: ValidationError, text: str, name: str) -> str:
    lines: list[str] = []
    for error in problem.errors(include_url=False):
        path: KeyPath = tuple(part for part in error["loc"] if part not in _KINDS)
        # a union of types reports once for each of them; the first is enough
        path = tuple(
            part for part in path if not (isinstance(part, str) and ("[" in part or part in {"float", "int", "str"}))
        )
        dotted = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
        said = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            said = f"there is no such key here (allowed: {_allowed(error['loc'])})"
        elif error["type"] == "missing":
            said = "this key is missing"
        elif error["type"].startswith("union_tag"):
            path, said = (*path, "kind"), "give kind = one of " + ", ".join(sorted(_KINDS))
        shown = (
            "" if error["type"] == "missing" or isinstance(error["input"], dict | list) else f" = {error['input']!r}"
        )
        sentence = f"{name}, line {locate(text, path)}: {dotted or 'site'}{shown}: {said}."
        if not any(sentence.split(": ", 2)[:2] == other.split(": ", 2)[:2] for other in lines):
            lines.append(sentence)
    return "\n".join(lines)


def _allowed(path: tuple[int | str, ...]) -> str:
    tables: dict[str, type[BaseModel]] = {
        "line": schema.LineSpec,
        "plane": schema.PlaneSpec,
        "floorplan": schema.FloorPlanSpec,
        "graph": schema.GraphSpec,
        "matrix": schema.MatrixSpec,
        "tolerance": schema.ToleranceSpec,
        "sensor": schema.SensorSpec,
        "sources": schema.SourcesSpec,
        "privacy": schema.PrivacySpec,
    }
    table = next((tables[part] for part in reversed(path[:-1]) if isinstance(part, str) and part in tables), SiteSpec)
    return ", ".join(table.model_fields)


def _blame(problem: InputError, spec: SiteSpec) -> KeyPath:
    """The key that a model's own complaint is about, from the values that it carries."""
    said = problem.values
    if "sensors" in said:
        return ("sensors",)
    if "sensor" in said and spec.sensor:
        ids = [sensor.id for sensor in spec.sensor]
        name = said["sensor"]
        return ("sensor", name if isinstance(name, int) else ids.index(str(name)), "at")
    if "key" in said:
        return ("physics", str(said["key"]))
    return ("physics", "drawing") if "drawing" in str(problem) else ("physics",)
