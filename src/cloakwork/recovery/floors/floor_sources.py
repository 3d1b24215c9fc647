"""Single frames of a floor: the posterior of many sources of known strength, sampled by local moves."""

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import Physics
from cloakwork.recovery.estimator import FrameSolution, Progress, Solution, Status
from cloakwork.recovery.floors.floor_belief import FloorBelief, FloorPrior
from cloakwork.recovery.floors.floor_motion import FloorMotion
from cloakwork.recovery.floors.floor_sampler import FloorField, Placement, disagreement
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.sampling import Prior
from cloakwork.recovery.tracking.motion import Motion
from cloakwork.recovery.vicinity import expected_map

MAX_SOURCES = 12  # whose places are all compared with each other


def samples_locally(physics: Physics, max_sources: int = 1) -> bool:
    """Whether up to `max_sources` are sampled by local moves: in a steady field, many sources or a large floor."""
    steady = physics.floor is not None and not physics.pulse
    return steady and (physics.near is not None or max_sources > MAX_SOURCES)


def checked_field(problem: Problem, prior: Prior) -> FloorField:
    """The field of a floor; refuses what only few sources on smaller floors allow, and those."""
    if not samples_locally(problem.physics, prior.max_sources):
        raise InputError(
            f"this is no large floor, or more than {MAX_SOURCES} sources, with a steady field: use `Tracker`.",
            sensors=problem.physics.sensors,
            places=problem.physics.places,
        )
    if not prior.known or problem.offsets is not None or prior.min_sources > 0:
        raise InputError(
            f"unknown strengths, drift and a least number of sources need at most {MAX_SOURCES} sources and 3,000,000 "
            "entries of sensors times places. Give one strength and no drift, or fewer sources, cells or sensors.",
            sensors=problem.physics.sensors,
            places=problem.physics.places,
        )
    return FloorField(problem, prior.low)


def solve_floor(
    problem: Problem,
    readings: FloatArray,
    prior: Prior,
    confidence: float,
    seed: int,
    progress: Progress | None,
) -> Solution:
    """Recover frames (frames, m) of a large floor, each alone; chains start where those of the last frame ended."""
    field = checked_field(problem, prior)
    plan, motion, frames = field.plan, FloorMotion(Motion.still(), field.plan), len(readings)
    expected = FloorPrior.after(FloorBelief.before(plan, prior.max_sources / 2, 1.0), motion, None, prior.max_sources)
    solutions, no_tracks, before = [], np.zeros(0, dtype=np.int64), tuple[Placement, ...]()
    for frame, values in enumerate(readings):
        draws = field.draw(values, expected.where, before, prior.max_sources, [seed, frame])
        tracks = expected.updated(draws, motion).tracks
        before = tuple((no_tracks, free) for _, free in draws.placements)
        listed = sorted(tracks, key=lambda track: -track.probability)
        sources = tuple(track.source(plan, prior.low, confidence) for track in listed)
        far = [disagreement(draws.others[:, track.cells], plan.space.places[track.cells]) for track in tracks]
        solutions.append(
            FrameSolution(
                map=expected_map(sources, plan.places),
                status=Status.SAMPLED if sources else Status.NOBODY,
                gap=float(np.mean(far)) if far else 0.0,
                sources=sources,
                fit=draws.misfit.fit(),
                counts=draws.counts(prior.max_sources),
                intensity=draws.others.mean(axis=0),
            )
        )
        if progress is not None:
            progress(frame + 1, frames)
    return Solution.of_frames(solutions, plan.places, prior.max_sources)
