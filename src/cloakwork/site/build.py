"""Builds the model of a site, from a site file and the files that it names, and chooses its estimator."""

import csv
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import spatial
from scipy.cluster import vq

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError, PhysicsError, SiteError
from cloakwork.physics import (
    EDGE_COLUMNS,
    Drift,
    FloorPlan,
    Graph,
    Heat,
    HeatLine,
    HeatPlane,
    Matrix,
    Metric,
    Physics,
    Placement,
    Pulse,
    Rooms,
    Space,
    Steady,
    edge_columns,
)
from cloakwork.recovery import (
    MAX_PATH_PLACES,
    MAX_SOURCES,
    BasisPursuit,
    Estimator,
    Motion,
    PointSources,
)
from cloakwork.site.schema import (
    MOVING,
    FloorPlanSpec,
    GraphSpec,
    LineSpec,
    MatrixSpec,
    MotionSpec,
    OwnSpec,
    PlaneSpec,
    SiteSpec,
    SourcesSpec,
)

MOTION_FIELDS = {"stay": "mean_sit_s", "walk": "mean_walk_s", "present": "mean_present_s", "absent": "mean_absent_s"}
USUAL_COUNT = 4  # sources, where the site file does not limit them


def build(spec: SiteSpec, folder: Path, *, run_code: bool = False) -> Physics:
    """Build the model of a site; files that it names are looked up in `folder`, and run only with `run_code`."""
    if isinstance(spec.physics, OwnSpec) and not run_code:
        raise SiteError(
            f'physics.kind = "{spec.physics.kind}" is a program, which commands and services do not run. Read the site '
            "file in Python with load_site(path, run_code=True).",
            at=("physics", "kind"),
        )
    makers: dict[type, Any] = {
        LineSpec: _line,
        PlaneSpec: _plane,
        FloorPlanSpec: _floorplan,
        GraphSpec: _graph,
        MatrixSpec: _matrix,
        OwnSpec: _own,
    }
    physics: Physics = makers[type(spec.physics)](spec.physics, spec, folder)
    if spec.sensor and len(spec.sensor) != physics.sensors:
        raise SiteError(
            f"{len(spec.sensor)} [[sensor]] tables, but the model has {physics.sensors} sensors.",
            tables=len(spec.sensor),
            expected=physics.sensors,
        )
    return physics


def make_drift(spec: SiteSpec, physics: Physics) -> Drift | None:
    """Return how the readings of a site wander without any source; None if they do not."""
    stated, strongest = spec.drift, spec.sources.strongest
    named = physics.space.labels is not None
    heat = [Heat(_heated(each.at, named=named), each.strength / strongest, each.over) for each in spec.heat]
    drift = Drift(sensor=stated.sensor, room=stated.room, all=stated.all, over=stated.over, heat=heat)
    try:
        return drift if len(drift.on(physics).over) else None
    except PhysicsError as problem:
        number = problem.values.get("heat")
        at = ("drift", "room") if number is None else ("heat", number, "at")
        raise SiteError(str(problem), at=at) from None


def _heated(at: object, *, named: bool) -> object:
    return tuple(at) if isinstance(at, list) else str(at) if named else at


def _line(physics: LineSpec, spec: SiteSpec, _: Path) -> Physics:
    positions = _positions(spec, 1)
    return HeatLine(
        n=physics.places,
        m=[p[0] for p in positions] if positions else spec.sensors or 1,
        T=physics.T,
        length=physics.length,
        gain=spec.sources.strongest,
        placement=Placement(physics.placement),
    )


def _plane(physics: PlaneSpec, spec: SiteSpec, _: Path) -> Physics:
    n = (physics.places[0], physics.places[1])
    size = (physics.size[0], physics.size[1])
    space = HeatPlane(n=n, m=(1, 1), T=physics.T, size=size).space
    return HeatPlane(n=n, m=_points(spec, space), T=physics.T, size=size, gain=spec.sources.strongest)


def _floorplan(physics: FloorPlanSpec, spec: SiteSpec, _: Path) -> Physics:
    if physics.drawing is not None:
        rooms = Rooms.from_text(physics.drawing, cell=physics.cell)
    else:
        size = physics.size or [0.0, 0.0]
        rooms = Rooms.from_walls(
            (size[0], size[1]),
            cell=physics.cell,
            walls=_segments(physics.walls),
            doors=_segments(physics.doors),
        )
    regime = Steady(physics.reach or 0.0) if physics.regime == "steady" else Pulse(physics.length or 0.0)
    return FloorPlan(
        rooms,
        _points(spec, rooms.space),
        regime,
        footprint=physics.footprint,
        gain=spec.sources.strongest,
        lag=physics.lag,
    )


def _graph(physics: GraphSpec, spec: SiteSpec, folder: Path) -> Physics:
    import networkx as nx  # noqa: PLC0415 - slow to load, and rarely needed

    graph: nx.Graph[Any] = nx.Graph()
    rows: Sequence[Sequence[str | int | float]] = (
        _edge_rows(folder / physics.edges) if isinstance(physics.edges, str) else physics.edges
    )
    for number, row in enumerate(rows, start=1):
        ends = [str(cell).strip() for cell in row[:2] if str(cell).strip()]
        if len(ends) < 2:
            raise SiteError(
                f"edge {number} names {len(ends)} nodes: give from, to, and optionally weight and length.",
                at=("physics", "edges"),
            )
        try:
            weight, length = (float(row[k]) if len(row) > k else 1.0 for k in (2, 3))
        except ValueError:
            raise SiteError(
                f"edge {number} has a weight or length that is not a number: {row!r}.", at=("physics", "edges")
            ) from None
        if graph.has_edge(*ends):
            raise SiteError(f"edge {number} between {ends[0]} and {ends[1]} is given twice.", at=("physics", "edges"))
        graph.add_edge(*ends, weight=weight, length=length)
    if spec.sensor:
        nodes = [str(sensor.id if sensor.at is None else sensor.at) for sensor in spec.sensor]
        for k, node in enumerate(nodes):
            if node not in graph:
                name = spec.sensor[k].id
                raise SiteError(f'sensor "{name}": {node!r} is not a node of the graph.', at=("sensor", k, "at"))
    else:
        whole = Graph(graph, tau=physics.tau).space
        nodes = [str(whole.labels[k]) for k in even_places(whole, spec.sensors or 1)] if whole.labels else []
    return Graph(graph, tau=physics.tau, sensors=nodes, gain=spec.sources.strongest)


def _matrix(physics: MatrixSpec, spec: SiteSpec, folder: Path) -> Physics:
    values = _numbers(folder / physics.file, "file", "rows of numbers, one row a sensor and one column a place")
    if physics.pairs is None:
        space = Space.line(values.shape[1], length=physics.length)
    else:
        table = _numbers(folder / physics.pairs, "pairs", "rows of place, place, length")
        if table.shape[1] != 3 or (table[:, :2] != np.rint(table[:, :2])).any():
            raise SiteError(
                f"physics.pairs = {physics.pairs!r}: give rows of place, place, length.", at=("physics", "pairs")
            )
        space = Space.path(table[:, :2].astype(np.int64), table[:, 2], places=values.shape[1])
    if spec.sensors is not None and spec.sensors != len(values):
        raise SiteError(f"sensors = {spec.sensors}, but the matrix has {len(values)} rows: give one row a sensor.")
    return Matrix(values * spec.sources.strongest, space, lag=physics.lag)


def _own(physics: OwnSpec, spec: SiteSpec, folder: Path) -> Physics:
    """Run the file of a model and let the class that it names build it."""
    file, _, name = physics.kind.partition(":")
    found = importlib.util.spec_from_file_location(f"_own_{Path(file).stem}", folder / file)
    if found is None or found.loader is None or not (folder / file).is_file():
        raise SiteError(
            f'physics.kind = "{physics.kind}": there is no file {file} next to the site file.', at=("physics", "kind")
        )
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)  # where dataclasses look it up
    found.loader.exec_module(module)
    model = getattr(module, name, None)
    if not (isinstance(model, type) and issubclass(model, Physics)):
        raise SiteError(
            f'physics.kind = "{physics.kind}": {file} has no class {name}(Physics).', at=("physics", "kind")
        )
    try:
        made = model.from_site(
            physics.options,
            sensors_at=[sensor.at for sensor in spec.sensor],
            gain=spec.sources.strongest,
            folder=folder,
        )
    except KeyError as missing:
        raise SiteError(
            f"physics.{missing.args[0]}: this key is missing.", at=("physics", str(missing.args[0]))
        ) from None
    if made.pulse and spec.sources.kind == "lasting":
        raise SiteError(f'{name} is a model of a pulse. Use sources.kind = "pulse".', at=("physics", "kind"))
    return made


def _points(spec: SiteSpec, space: Space) -> list[tuple[float, float]]:
    if spec.sensor:
        return [(p[0], p[1]) for p in _positions(spec, 2)]
    return [(float(x), float(y)) for x, y in space.places[even_places(space, spec.sensors or 1)]]


def _positions(spec: SiteSpec, dimension: int) -> list[list[float]]:
    positions = []
    for k, sensor in enumerate(spec.sensor):
        values = sensor.at if isinstance(sensor.at, list) else [sensor.at]
        numbers = [float(v) for v in values if isinstance(v, int | float)]
        if not len(numbers) == len(values) == dimension:
            form = "one number" if dimension == 1 else "[x, y]"
            raise SiteError(f'sensor "{sensor.id}": at = {sensor.at!r}; give {form}.', at=("sensor", k, "at"))
        positions.append(numbers)
    return positions


def _segments(pairs: list[list[list[float]]]) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    return [((a[0], a[1]), (b[0], b[1])) for a, b in pairs]


def _numbers(path: Path, key: str, form: str) -> FloatArray:
    """Read a table of numbers from a NumPy or CSV file; an error says that it should hold `form`."""
    with _named(path, key, form):
        if path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
        else:
            table = np.array([[float(cell) for cell in row] for row in _rows(path)])
        if table.dtype.kind not in "fiu" or table.ndim != 2 or not table.size:
            raise ValueError
    return np.asarray(table, dtype=np.float64)


@contextmanager
def _named(path: Path, key: str, form: str) -> Iterator[None]:
    """Turn the errors of reading a file into one that names the key, and what the file should hold."""
    try:
        yield
    except OSError as problem:
        text = problem.strerror or str(problem)
        raise SiteError(f"physics.{key} = {path.name!r}: {text}.", at=("physics", key)) from None
    except (ValueError, EOFError, csv.Error):
        raise SiteError(f"physics.{key} = {path.name!r}: give {form}.", at=("physics", key)) from None


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]


def _edge_rows(path: Path) -> list[list[str]]:
    """Rows of from, to, and perhaps weight and length; a header says in which order the file has them."""
    with _named(path, "edges", "rows of from, to, weight, length"):
        rows = _rows(path)
    columns = edge_columns([cell.strip() for cell in rows[0]]) if rows else None
    if columns is None:
        return rows
    named = [dict(zip(columns, row, strict=False)) for row in rows[1:]]
    return [[row.get(name, "1" if k > 1 else "") for k, name in enumerate(EDGE_COLUMNS)] for row in named]


def even_places(space: Space, number: int) -> IntArray:
    """Return `number` different places, spread evenly.

    They form a lattice if one fits. Otherwise they start far apart, and each moves to the middle of the places that are
    nearest to it.
    """
    if number > len(space):
        raise SiteError(f"sensors = {number}: there are only {len(space)} cells to put them in.", at=("sensors",))
    lattice = _lattice(space, number)
    if lattice is not None:
        return lattice
    chosen = [0]
    nearest = space.distances(0)
    while len(chosen) < number:
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, space.distances(farthest))
    if space.places.shape[1] == 0 or number == len(space):
        return np.array(sorted(chosen), dtype=np.int64)
    centres, _ = vq.kmeans2(space.places, space.places[chosen], minit="matrix", iter=20, missing="warn")
    places: list[int] = []
    for centre in centres:
        order = np.argsort(((space.places - centre) ** 2).sum(axis=1), kind="stable")
        places.append(next(int(place) for place in order if int(place) not in places))
    return np.array(sorted(places), dtype=np.int64)


def _lattice(space: Space, number: int) -> IntArray | None:
    """Return a rectangular lattice of exactly `number` places, None if a point is off the floor or cells are long."""
    if space.places.shape[1] != 2 or not len(space.lengths):
        return None
    half = float(space.lengths.min()) / 2
    low, high = space.places.min(axis=0) - half, space.places.max(axis=0) + half
    width, height = high - low
    columns = [c for c in range(1, number + 1) if number % c == 0]
    best = min(columns, key=lambda c: abs(np.log((width / c) / (height / (number // c)))))
    steps = np.array([width / best, height / (number // best)])
    if not 0.5 < steps[0] / steps[1] < 2:
        return None
    x, y = np.meshgrid(np.arange(best) + 0.5, np.arange(number // best) + 0.5, indexing="ij")
    points = low + np.stack([x.ravel(), y.ravel()], axis=1) * steps
    # slightly off the middle, so that a point between cells always takes the same one
    distances, nearest = (np.asarray(k) for k in spatial.KDTree(space.places).query(points - 1e-6 * half))
    places = np.unique(nearest).astype(np.int64)
    on_floor = distances.max() <= np.sqrt(2) * 1.01 * half
    return places if on_floor and len(places) == number else None


def make_motion(spec: SiteSpec, physics: Physics, not_followed: str) -> Motion:
    """Return how the sources of a site move: people on a floor plan and sources that stay elsewhere, unless stated.

    Refuse any statement about motion if the sources are not followed, for the given reason.

    >>> from cloakwork.site import parse_site
    >>> site = parse_site('''
    ... name = "pipe"
    ... sensors = 4
    ... physics = {kind = "line", places = 20, T = 0.01}
    ... sources = {kind = "pulse"}
    ... privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.1}
    ... motion = {present = "2h"}
    ... ''')
    >>> site.motion.mean_sit_s, site.motion.mean_present_s
    (inf, 7200.0)
    """
    stated = spec.motion
    keys = [key for key in MotionSpec.model_fields if key in stated.model_fields_set - {"hold"}]
    if not_followed and (keys or spec.entrance):
        at = ("motion", keys[0]) if keys else ("entrance", 0, "at")
        name = f"motion.{keys[0]}" if keys else "entrance 1"
        raise SiteError(f"{name}: the sources of this site are not followed: {not_followed}. Leave it out.", at=at)
    kind = stated.kind or ("people" if physics.floor else "still")
    moving = next((key for key in keys if key in MOVING), None)
    if kind == "still" and moving is not None:
        raise SiteError(
            f"motion.{moving}: sources on a {spec.physics.kind} stay where they are, unless kind says otherwise. "
            'Add kind = "people" for sources that move.',
            at=("motion", moving),
        )
    given = {MOTION_FIELDS.get(key, key): getattr(stated, key) for key in keys if key != "kind"}
    entrances = tuple(_entrance(number, spec, physics) for number in range(len(spec.entrance))) or None
    return replace(Motion.still() if kind == "still" else Motion(), **given, entrances=entrances)


def _entrance(number: int, spec: SiteSpec, physics: Physics) -> object:
    """Return the place of an entrance as a motion states it: a label, a number or coordinates."""
    at, space = spec.entrance[number].at, physics.space
    try:
        place = physics.place_at(str(at) if space.labels is not None else at)
    except InputError as problem:
        raise SiteError(f"entrance {number + 1}, at: {problem}", at=("entrance", number, "at")) from None
    if space.labels is not None:
        return space.labels[place]
    return tuple(space.places[place].tolist()) if space.places.shape[1] else place


@dataclass(frozen=True)
class EstimatorChoice:
    """An estimator, and the reason for choosing it."""

    estimator: Estimator
    reason: str


def choose_estimator(sources: SourcesSpec, space: Space, *, local: bool = False) -> EstimatorChoice:
    """Choose point sources of the stated strengths, or the smallest total that fits if there are too many sources.

    `local` says that the sources of the model are sampled by local moves, of which there may be many.
    """
    most = sources.max_count or USUAL_COUNT
    too_many = ""
    if local and isinstance(sources.strength, tuple):
        too_many = "the floor is too large for sources of unknown strength"
    elif most > MAX_SOURCES and not local:
        too_many = f"{most} sources are too many to compare where each might be"
    elif space.metric is Metric.PATH and len(space) > MAX_PATH_PLACES and not local:
        too_many = f"{len(space):,} places are too many to compare where each source might be"
    if too_many:
        return EstimatorChoice(BasisPursuit(), too_many)
    if isinstance(sources.strength, tuple):
        low, high = sources.strength
        reason = f"each of up to {most} sources has a strength of its own from {low:g} to {high:g}"
        return EstimatorChoice(PointSources((low / high, 1.0), max_sources=most), reason)
    reason = f"each of up to {most} sources has the strength {sources.strength:g}"
    return EstimatorChoice(PointSources(1.0, max_sources=most), reason)
