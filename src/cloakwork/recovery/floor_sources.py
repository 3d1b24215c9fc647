"""Single frames of a floor: the posterior of many sources of known strength, sampled by local moves."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Physics
from cloakwork.recovery.estimator import Progress, Solution, Status
from cloakwork.recovery.floor_belief import FloorBelief, FloorField, FloorPrior, apart
from cloakwork.recovery.floor_motion import FloorMotion
from cloakwork.recovery.motion import Motion
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.sampling import Prior

MOST_SOURCES = 12  # whose places are all compared with each other


def samples_locally(physics: Physics, most: int = 1) -> bool:
    """Whether up to `most` sources are sampled by local moves: in a steady field, many sources or a large floor."""
    return isinstance(physics, FloorPlan) and (physics.local is not None or (most > MOST_SOURCES and not physics.pulse))


@dataclass(frozen=True, eq=False)
class FloorStart:
    """The places of the sources in each chain after a frame, from which the next frame starts."""

    plan: FloorPlan
    places: tuple[IntArray, ...]


def checked_field(problem: Problem, prior: Prior) -> FloorField:
    """The field of a floor; refuses what only few sources on smaller floors allow, and those."""
    if not samples_locally(problem.physics, prior.most):
        raise InputError(
            f"this is no large floor, or more than {MOST_SOURCES} sources, with a steady field: use `Tracker`.",
            sensors=problem.physics.sensors,
            places=problem.physics.places,
        )
    if not prior.known or problem.offsets is not None or prior.least > 0:
        raise InputError(
            f"unknown strengths, drift and a least number of sources need at most {MOST_SOURCES} sources and 3,000,000 "
            "entries of sensors times places. Give one strength and no drift, or fewer sources, cells or sensors.",
            sensors=problem.physics.sensors,
            places=problem.physics.places,
        )
    return FloorField(problem, prior.low)


def solve_floor(
    problem: Problem,
    readings: FloatArray,
    prior: Prior,
    level: float,
    seed: int,
    progress: Progress | None,
    after: object,
) -> Solution:
    """Recover frames (frames, m) of a large floor, each alone; the chains start from the frame before."""
    field = checked_field(problem, prior)
    plan, motion, frames = field.plan, FloorMotion(Motion.still(), field.plan), len(readings)
    expected = FloorPrior.after(FloorBelief.before(plan, prior.most / 2, 1.0), motion, None, prior.most)
    kept = after if isinstance(after, FloorStart) and after.plan is plan else None
    intensity, counts, gap = np.zeros((frames, plan.places)), np.zeros((frames, prior.most + 1)), np.zeros(frames)
    maps, none = np.zeros_like(intensity), np.zeros(0, dtype=np.int64)
    found, fits = [], []
    for frame, values in enumerate(readings):
        states = () if kept is None else tuple((none, places) for places in kept.places)
        draws = field.draw(values, expected, states, prior.most, [seed, frame])
        belief = draws.updated(expected, motion)
        kept = FloorStart(plan, tuple(places for _, places in draws.states))
        fits.append(draws.misfit.fit())
        sources = [track.source(plan, prior.low, level) for track in belief.tracks]
        found.append(tuple(sorted(sources, key=lambda source: -source.probability)))
        intensity[frame] = draws.others.mean(axis=0)
        counts[frame] = np.bincount(draws.totals.ravel(), minlength=prior.most + 1) / draws.totals.size
        far = [apart(draws.others[:, track.cells], plan.space.places[track.cells]) for track in belief.tracks]
        gap[frame] = np.mean(far) if far else 0.0
        for source in found[-1]:
            maps[frame, source.place] += source.weight * source.probability
        if progress is not None:
            progress(frame + 1, frames)
    return Solution(
        maps=maps,
        status=tuple(Status.SAMPLED if each else Status.NOBODY for each in found),
        gap=gap,
        violation=np.zeros(frames),
        radius=np.full(frames, np.nan),
        sources=tuple(found),
        fits=tuple(fits),
        counts=counts,
        intensity=intensity,
        last=kept,
    )
