"""How the sources of a site are followed over time: `[motion]` and `[[entrance]]`, which do not affect the noise."""

from dataclasses import replace

from cloakwork.errors import InputError, SiteError
from cloakwork.physics import FloorPlan, Physics
from cloakwork.recovery import Motion
from cloakwork.site.schema import MOVING, MotionSpec, SiteSpec

SHORTEST_HOLD = 30.0  # seconds
HELD_PERIODS = 2


def make_motion(spec: SiteSpec, physics: Physics, not_followed: str) -> Motion:
    """Return how the sources of a site move: people on a floor plan and sources that stay elsewhere, unless stated.

    What a site file says about motion is refused if its sources are not followed, for the given reason.

    >>> from cloakwork.site import parse_site
    >>> site = parse_site('''
    ... name = "pipe"
    ... sensors = 4
    ... physics = {kind = "line", places = 20, T = 0.01}
    ... sources = {kind = "pulse"}
    ... privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.1}
    ... motion = {present = "2h"}
    ... ''')
    >>> site.motion.stay, site.motion.present
    (inf, 7200.0)
    """
    stated = spec.motion
    keys = [key for key in MotionSpec.model_fields if key in stated.model_fields_set - {"hold"}]
    if not_followed and (keys or spec.entrance):
        table: dict[str, object] = {"motion": None, "key": keys[0]} if keys else {"entrance": 0, "key": "at"}
        name = f"motion.{keys[0]}" if keys else "entrance 1"
        raise SiteError(f"{name}: the sources of this site are not followed: {not_followed}. Leave it out.", **table)
    kind = stated.kind or ("people" if isinstance(physics, FloorPlan) else "still")
    moving = next((key for key in keys if key in MOVING), None)
    if kind == "still" and moving is not None:
        raise SiteError(
            f"motion.{moving}: sources on a {spec.physics.kind} stay where they are, unless kind says otherwise. "
            'Add kind = "people" for sources that move.',
            motion=None,
            key=moving,
        )
    given = {key: getattr(stated, key) for key in keys if key != "kind"}
    entrances = tuple(_entrance(number, spec, physics) for number in range(len(spec.entrance))) or None
    return replace(Motion.still() if kind == "still" else Motion(), **given, entrances=entrances)


def hold_of(stated: MotionSpec, period_ms: int) -> float:
    """Return the seconds for which a zone in doubt keeps its state while the other one is more likely."""
    return max(SHORTEST_HOLD, HELD_PERIODS * period_ms / 1000) if stated.hold is None else stated.hold


def _entrance(number: int, spec: SiteSpec, physics: Physics) -> object:
    """Return the place of an entrance as a motion states it: a label, a number or coordinates."""
    at, space = spec.entrance[number].at, physics.space
    try:
        if isinstance(physics, FloorPlan) and isinstance(at, list):
            place = physics.rooms.cell_at(*at)
        else:
            place = space.index(str(at) if space.labels is not None else at)
    except InputError as problem:
        raise SiteError(f"entrance {number + 1}, at: {problem}", entrance=number, key="at") from None
    if space.labels is not None:
        return space.labels[place]
    return tuple(space.places[place].tolist()) if space.places.shape[1] else place
