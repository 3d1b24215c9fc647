"""One installation, as its site file describes it."""

import difflib
import hashlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import Physics, Tolerance
from cloakwork.privacy import Cloak, SensorChoice, choose_sensors
from cloakwork.site import schema
from cloakwork.site.build import Built, build
from cloakwork.site.canonical import digest_of
from cloakwork.site.choice import Choice, choose_estimator
from cloakwork.site.lines import Path as KeyPath
from cloakwork.site.lines import locate
from cloakwork.site.schedule import Schedule, make_schedule
from cloakwork.site.schema import SiteSpec
from cloakwork.site.zones import Zone, zones_of

LARGEST_FILE = 10_000_000
_KINDS = {"line", "plane", "floorplan", "graph", "matrix"}
_WHOLE = {"at", "edges", "walls", "doors", "room", "corners", "between"}  # a mistake within is told of all of it


@dataclass(frozen=True, eq=False)
class Site:
    """A validated site file; the model and the cloak are made when first asked for."""

    spec: SiteSpec
    folder: Path
    source: str = "SITE"
    """Name of the site file, for messages."""

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
    def unit(self) -> str:
        """Unit of the readings; empty where the site file does not say."""
        return self.spec.unit or ""

    @cached_property
    def zones(self) -> tuple[Zone, ...]:
        """Parts of the space that have a name: those of the site file, or else the rooms of a floor plan."""
        return zones_of(self.spec, self.physics)

    @cached_property
    def schedule(self) -> Schedule:
        """When a device of the site reads."""
        told = self.spec.privacy
        return make_schedule(window=told.window, allowed=told.readings_per_window, period=told.period)

    @property
    def period_ms(self) -> int:
        """Milliseconds between two readings of one sensor."""
        return self.schedule.period_ms

    @property
    def files(self) -> dict[str, Path]:
        """The files that the site file names, by the key of the physics table that names them."""
        names = {key: getattr(self.spec.physics, key, None) for key in ("edges", "file", "pairs")}
        return {key: self.folder / name for key, name in names.items() if isinstance(name, str)}

    @property
    def digest(self) -> str:
        """SHA-256 of all that the site file says and of the files that it names, as they are now.

        Comments and layout do not count, nor does a key that is set to its default, nor do zones: they have no part in
        the noise, and naming a room shall not make devices need a new plan.
        """
        held = {}
        for key, path in self.files.items():
            try:
                held[key] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as problem:
                raise SiteError(f"physics.{key} = {path.name!r}: {problem.strerror or problem}.", key=key) from None
        told = self.spec.model_dump(mode="json", exclude_defaults=True, exclude={"zone"})
        return digest_of({"files": held, "site": told})

    @property
    def tolerance(self) -> Tolerance:
        """How wrong the model may be."""
        declared = self.spec.physics.tolerance
        return Tolerance(declared.diffusion, declared.gain, declared.position, declared.doors)

    @property
    def _claim(self) -> dict[str, Any]:
        """What a cloak of the site shall meet."""
        told = self.spec.privacy
        return {
            "epsilon": told.epsilon,
            "delta": told.delta,
            "alpha": told.alpha,
            "scope": told.scope,
            "calibration": told.calibration,
            "resolution": told.resolution,
            "readings_per_window": told.readings_per_window,
            "tolerance": self.tolerance,
        }

    def choose_sensors(self, count: int, *, progress: Callable[[float], None] | None = None) -> SensorChoice:
        """The `count` of the site's sensors that locate a lone source best at the site's claim."""
        return choose_sensors(self.physics, count, **self._claim, progress=progress)

    def estimator(self) -> Choice:
        """What to recover with, from what the site says about its sources, and why."""
        return choose_estimator(self.spec.sources, self.physics.space)

    def cloak(self) -> Cloak:
        """A new cloak that meets the site's claim, with its budget unspent."""
        return Cloak(self.physics, **self._claim, design=self.spec.privacy.design)

    def cloak_with(self, sigmas: FloatArray, steps: FloatArray) -> Cloak:
        """A new cloak with this noise and these steps, refused if they miss the site's claim."""
        return Cloak(self.physics, **self._claim | {"sigma": sigmas, "resolution": steps})


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
        site = Site(SiteSpec.model_validate(given), folder or Path(), name)
    except ValidationError as problem:
        raise SiteError(_sentences(problem, text, name)) from None
    try:
        _ = site.zones if site.spec.zone else site.physics
    except InputError as problem:
        said = str(problem)
        number = problem.values.get("sensor")
        if isinstance(number, int) and site.spec.sensor:
            said = said.replace(f"sensor {number}", f'sensor "{site.spec.sensor[number].id}"', 1)
        raise SiteError(f"{name}, line {locate(text, _blame(problem, site.spec))}: {said}") from None
    return site


def _sentences(problem: ValidationError, text: str, name: str) -> str:
    """One line for each key that is wrong; a key that may have several types is reported once."""
    lines: dict[KeyPath, str] = {}
    for error in problem.errors(include_url=False):
        kinds = {*_KINDS, "float", "int", "str", "number", "list"}
        path: KeyPath = tuple(
            part for part in error["loc"] if not (isinstance(part, str) and (part in kinds or "[" in part))
        )
        if error["type"].startswith("union_tag"):
            path = (*path, "kind")
        whole = path[: next((k for k, part in enumerate(path) if part in _WHOLE), 99) + 1]
        lines.setdefault(whole, f"{name}, line {locate(text, path)}: {_said(error, whole)}")
    return "\n".join(lines.values())


def _said(error: ErrorDetails, path: KeyPath) -> str:
    dotted = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    given = error["input"]
    key = str(path[-1]) if path else ""
    if error["type"] == "missing":
        table = key in {"physics", "sources", "privacy"}
        return f"the table [{key}] is missing." if table else f"{dotted}: this key is missing."
    if error["type"] == "extra_forbidden":
        allowed = _allowed(error["loc"])
        near = difflib.get_close_matches(key, allowed, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        return f"{dotted} = {given!r}: there is no such key here (allowed: {', '.join(allowed)}){meant}"
    if error["type"].startswith("union_tag"):
        return f"{dotted} = {given.get('kind')!r}: give kind = one of {', '.join(sorted(_KINDS))}."
    wanted = _GENERIC.get(error["type"], error["msg"])
    if error["type"] in _GENERIC:
        wanted = _FORMS.get(key, wanted)
    if error["type"] == "literal_error":
        wanted = f"give {error['ctx']['expected']}"
    if error["type"] in _BOUNDS:
        kind, bound = _BOUNDS[error["type"]]
        wanted = f"give a number {kind} {error['ctx'][bound]:g}"
    shown = "" if isinstance(given, dict | list) and key not in {"at", "edges"} else f" = {given!r}"
    return f"{dotted or 'site'}{shown}: {wanted.removeprefix('Value error, ')}."


_FORMS = {
    "name": "give letters, digits, - and _, at most 64 of them",
    "id": "give letters, digits, - and _, at most 64 of them",
    "at": "give a number on a line, [x, y] in a room or on a plane, or the name of a node",
    "edges": 'give a file name, or a list of ["from", "to"], with a weight and a length after them if you like',
    "walls": "give a list of [[x, y], [x, y]] in metres",
    "doors": "give a list of [[x, y], [x, y]] in metres",
    "sensor": "write [[sensor]], with double brackets, once for each sensor",
    "zone": "write [[zone]], with double brackets, once for each zone",
    "room": "give [x, y], a point in the room",
    "corners": "give a list of [x, y]: two opposite corners of a rectangle, or all corners of another shape",
    "between": "give [from, to], two positions on the line",
}
_GENERIC = {
    "string_pattern_mismatch": "other characters are expected",
    "float_type": "give a number, without quotes and without a unit",
    "int_type": "give a whole number, without quotes",
    "string_type": "give a text in quotes",
    "list_type": "give a list in [ ]",
    "too_short": "give more values",
    "too_long": "give fewer values",
    "bool_type": "give true or false",
}


_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("of at least", "ge"),
    "less_than": ("below", "lt"),
}


def _allowed(path: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {
        "line": schema.LineSpec,
        "plane": schema.PlaneSpec,
        "floorplan": schema.FloorPlanSpec,
        "graph": schema.GraphSpec,
        "matrix": schema.MatrixSpec,
        "tolerance": schema.ToleranceSpec,
        "sensor": schema.SensorSpec,
        "zone": schema.ZoneSpec,
        "sources": schema.SourcesSpec,
        "privacy": schema.PrivacySpec,
    }
    table = next((tables[part] for part in reversed(path[:-1]) if isinstance(part, str) and part in tables), SiteSpec)
    return list(table.model_fields)


def _blame(problem: InputError, spec: SiteSpec) -> KeyPath:
    """The key that a model's own complaint is about, from the values that it carries."""
    said = problem.values
    if "zone" in said:
        return ("zone", *(part for part in (said["zone"], said["key"]) if isinstance(part, int | str)))
    if "sensors" in said:
        return ("sensors",)
    if "sensor" in said and spec.sensor:
        ids = [sensor.id for sensor in spec.sensor]
        name = said["sensor"]
        return ("sensor", name if isinstance(name, int) else ids.index(str(name)), "at")
    if "key" in said:
        return ("physics", str(said["key"]))
    return ("physics", "drawing") if "drawing" in str(problem) else ("physics",)
