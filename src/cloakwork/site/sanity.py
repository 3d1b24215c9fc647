"""What is odd about a site file: numbers in the wrong unit, rooms without a zone, sensors on a wall.

A reach or a footprint in centimetres makes the readings flat, and the noise that hides a move nearly nothing. No rule
of the mechanism notices that, so the numbers are compared with the floor, the cell and the part.
"""

from collections.abc import Iterator

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import Rooms
from cloakwork.site.advice import Advice
from cloakwork.site.installation import Site
from cloakwork.site.schema import FloorPlanSpec
from cloakwork.site.zones import room_numbers

FAR, TOO_FAR = 0.5, 5.0  # reaches, in longer sides of the floor
MAX_DELTA, MAX_EPSILON = 0.01, 10.0  # a guarantee beyond these hides little
WIDE, TOO_WIDE = 0.5, 1.0  # footprints, in shorter sides of the floor
SMALLEST_MOVE = 0.01  # metres
CELLS, SIDES = (0.05, 1.0), (1.0, 500.0)  # metres
FASTEST = 10.0  # metres per second
HOT, TOO_HOT, COLD = 30.0, 300.0, 0.005  # degrees that one source may add to a reading
BARELY_SEEN, UNSEEN = 1.0, 0.05  # largest reading of a source, in steps or noise floors of the part
ON_A_WALL = 0.02  # metres


def oddities(site: Site) -> tuple[Advice, ...]:
    """Return what is odd about a site, the impossible first.

    >>> from importlib.resources import files
    >>> from cloakwork.site import load_site
    >>> oddities(load_site(str(files("cloakwork.site") / "example.toml")))
    ()
    """
    physics, floor = site.spec.physics, tuple[Advice, ...]()
    if isinstance(physics, FloorPlanSpec) and site.physics.floor is not None:
        floor = (
            *_lengths(site, physics, site.physics.floor),
            *_walls(site, physics),
            *_rooms(site, site.physics.floor),
        )
    found = (*floor, *_guarantee(site), *_alpha(site), *_strength(site))
    return tuple(sorted(found, key=lambda advice: not advice.impossible))


def _lengths(site: Site, physics: FloorPlanSpec, rooms: Rooms) -> Iterator[Advice]:
    """Lengths of a floor plan that are not metres."""
    short, long = sorted(rooms.size)
    floor, unit = f"a floor of {long:g} x {short:g} m", "Lengths are metres"
    if not SIDES[0] <= long <= SIDES[1]:
        key = "drawing" if physics.size is None else "size"
        yield Advice(("physics", key), f"{key}: {floor} is an odd size for a site.", f"{unit}: check cell and {key}.")
    if not CELLS[0] <= physics.cell <= CELLS[1]:
        problem = f"cell = {physics.cell:g}: a source fills a cell, and people are 0.25 to 0.5 m wide."
        yield Advice(("physics", "cell"), problem, f"{unit}: write cell = 0.25.")
    for key, value in (("reach", physics.reach), ("length", physics.length)):
        if value is not None and value > FAR * long:
            problem = f"{key} = {value:g} on {floor}: all sensors then read nearly the same, wherever people are."
            yield Advice(("physics", key), problem, _metres(key, value), impossible=value > TOO_FAR * long)
    if physics.footprint > WIDE * short:
        problem = f"footprint = {physics.footprint:g}: a sensor that averages over so much of {floor} sees no moves."
        change = _metres("footprint", physics.footprint)
        yield Advice(("physics", "footprint"), problem, change, impossible=physics.footprint > TOO_WIDE * short)
    for table, speed in (("privacy", site.spec.privacy.speed), ("motion", site.spec.motion.speed)):
        if isinstance(speed, float) and speed > FASTEST:
            problem = f"speed = {speed:g}: people walk at 1.5 m/s."
            yield Advice((table, "speed"), problem, "Speeds are metres per second: write speed = 1.5.")


def _metres(key: str, value: float) -> str:
    return f"Lengths are metres: if you meant centimetres, write {key} = {value / 100:g}."


def _guarantee(site: Site) -> Iterator[Advice]:
    """Figures of a guarantee that hardly promises anything."""
    privacy = site.spec.privacy
    for key, claim in ((("privacy",), privacy), (("privacy", "stay"), privacy.stay)):
        if claim is not None and claim.delta > MAX_DELTA:
            problem = f"delta = {claim.delta:g}: the guarantee may fail with about this probability."
            yield Advice((*key, "delta"), problem, "Write delta = 1e-5.")
        if claim is not None and claim.epsilon > MAX_EPSILON:
            problem = f"epsilon = {claim.epsilon:g}: above {MAX_EPSILON:g}, whoever guesses is nearly always right."
            yield Advice((*key, "epsilon"), problem, "Write epsilon = 2.0.")


def _alpha(site: Site) -> Iterator[Advice]:
    """A hidden distance that is larger than the space, or too small to hide anything."""
    alpha, extent = site.spec.privacy.alpha, float(np.ptp(site.physics.space.places, axis=0).max(initial=0.0))
    unit = f" {site.length_unit}".rstrip()
    if 0 < extent < alpha:
        problem = f"alpha = {alpha:g}{unit} is larger than the whole space ({extent:g}{unit})."
        yield Advice(("privacy", "alpha"), problem, "Check its unit: it must be the unit of the space.")
    if unit and alpha < SMALLEST_MOVE:
        problem = f"alpha = {alpha:g} m: no one sits as still as that, so hardly anything is hidden."
        yield Advice(("privacy", "alpha"), problem, "Lengths are metres: write alpha = 0.1.")


def _strength(site: Site) -> Iterator[Advice]:
    """Sources that a part cannot notice, or that would be hotter than fire."""
    peak, unit, key = site.physics.peak, site.unit, ("sources", "strength")
    shown = f"one source changes a reading by at most {peak:.2g} {unit}".rstrip()
    change = f"Check strength = {site.spec.sources.strongest:g}, and the lengths under [physics]."
    floors = [each for each in (site.resolutions, site.noise_floors) if each is not None]
    part = float(np.max(floors, axis=0).min()) if floors else 0.0
    if part and peak < BARELY_SEEN * part:
        problem = f"{shown}, less than the step or the noise floor of the best sensor ({part:g} {unit}".rstrip() + ")."
        yield Advice(key, problem, change, impossible=peak < UNSEEN * part)
    elif unit.endswith("C") and peak < COLD:
        yield Advice(key, f"{shown}, which no sensor resolves.", change)
    if unit.endswith("C") and peak > HOT:
        problem = f"{shown}: people warm a sensor by a few degrees at most."
        yield Advice(key, problem, f"{change} Strength is not in watts.", impossible=peak > TOO_HOT)


def _walls(site: Site, physics: FloorPlanSpec) -> Iterator[Advice]:
    """Sensors on a wall line, whose side of the wall is decided by rounding."""
    for number, sensor in enumerate(site.spec.sensor):
        at = np.array(sensor.at, dtype=np.float64)
        on_wall = any(_apart(at, np.array(wall)) < ON_A_WALL for wall in physics.walls)
        if on_wall and not any(_apart(at, np.array(door)) < ON_A_WALL for door in physics.doors):
            problem = f'sensor "{sensor.id}" at [{at[0]:g}, {at[1]:g}] is on the line of a wall.'
            change = f"Write the side on which it hangs: a point at least {physics.cell / 2:g} m off the line."
            yield Advice(("sensor", number, "at"), problem, change)


def _apart(point: FloatArray, segment: FloatArray) -> float:
    """Return the distance of a point from a segment."""
    start, along = segment[0], segment[1] - segment[0]
    share = np.clip((point - start) @ along / max(float(along @ along), 1e-300), 0, 1)
    return float(np.hypot(*(point - start - share * along)))


def _rooms(site: Site, rooms: Rooms) -> Iterator[Advice]:
    """Rooms that have no part in any zone, where a site names zones."""
    numbers = room_numbers(rooms, site.spec)
    covered = np.zeros(len(numbers), dtype=bool)
    for zone in site.zones:
        covered[zone.places] = True
    for room in sorted(set(numbers[numbers >= 0].tolist()) - set(numbers[covered].tolist())):
        places = rooms.space.places[numbers == room]
        x, y = places[np.abs(places - places.mean(axis=0)).sum(axis=1).argmin()].tolist()
        problem = f"the room at [{x:g}, {y:g}] has no zone: whoever is there is in no room."
        yield Advice(("zone",), problem, f"Add a [[zone]] with room = [{x:g}, {y:g}].")
