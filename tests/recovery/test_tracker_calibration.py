"""What a tracker states is true as often as it states: vicinities, counts and identities of people.

Scenes, not frames, are independent of each other: all errors are over scenes.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import cloakwork as cw
from cloakwork.physics import HeatLine, sources
from cloakwork.recovery.tracking.motion import MotionModel
from cloakwork.recovery.tracking.path_kernels import predict

MOST, FRAMES, LAG, MINUTE = 3, 40, 5, 60.0
MOTION = cw.Motion(mean_sit_s=600.0, mean_walk_s=20.0, mean_present_s=3600.0, mean_absent_s=1800.0)

Scene = list[dict[int, int]]  # the place of each person who is there, by a number of their own


def flat() -> cw.FloorPlan:
    rooms = cw.Rooms.from_walls((6, 4), cell=0.5, walls=[((3, 0), (3, 4))], doors=[((3, 1), (3, 2))])
    at = [(x, y) for x in np.arange(0.5, 6).tolist() for y in np.arange(0.5, 4).tolist()]
    return cw.FloorPlan(rooms, at, cw.Steady(reach=1.0), footprint=0.5)


def people(plan: cw.FloorPlan, rng: np.random.Generator, most: int = MOST) -> Scene:
    """The places of everyone, minute by minute; someone who comes again is someone else."""
    n = plan.places
    moves = MotionModel(MOTION, plan.space.distance_table, plan.rooms.cell).over(MINUTE)
    to = np.empty((2 * n + 1, 2 * n + 1), dtype=np.float32)
    predict(moves, np.eye(2 * n + 1, dtype=np.float32), to)
    to = np.cumsum(to, axis=1, dtype=np.float64)
    count = int(rng.integers(most + 1))
    states = [int(rng.integers(n)) if k < count else 2 * n for k in range(most)]
    names = list(range(most))
    scene: Scene = []
    for _ in range(FRAMES):
        scene.append({name: state % n for name, state in zip(names, states, strict=True) if state < 2 * n})
        names = [name if state < 2 * n else name + most for name, state in zip(names, states, strict=True)]
        states = [min(int(np.searchsorted(to[state], rng.random() * to[state, -1])), 2 * n) for state in states]
    return scene


class ExactLaw:
    """The joint law of two sources after each frame, over all pairs of their states, and `LAG` frames later."""

    def __init__(self, tracker: cw.Tracker) -> None:
        self.observer, self.n = tracker.observer, len(tracker.observer.positions)
        self.to = np.empty((2 * self.n + 1, 2 * self.n + 1), dtype=np.float32)
        predict(tracker.moves.over(MINUTE), np.eye(len(self.to), dtype=np.float32), self.to)
        there, absent = np.append(tracker.moves.first, 0), np.append(0 * tracker.moves.first, 1)
        one = np.outer(there, absent)
        self.law = (np.outer(absent, absent) + (one + one.T) / 2 + np.outer(there, there)) / 3
        self.laws: list[NDArray[np.float64]] = []
        self.likelihoods: list[NDArray[np.float64]] = []

    def step(self, frame: NDArray[np.float64]) -> None:
        seen = self.observer.observe(frame, frozenset()).scores
        gain = np.append(np.tile(seen.readings[0] - seen.squares / 2, 2), 0)
        shared = np.pad(np.tile(seen.overlap, (2, 2)), (0, 1))
        weight = gain[:, None] + gain - shared
        self.likelihoods.append(np.exp(weight - weight.max()))
        before = self.to.T @ self.laws[-1] @ self.to if self.laws else self.law
        law = before * self.likelihoods[-1]
        self.laws.append(law / law.sum())

    def settled(self) -> NDArray[np.float64]:
        later = np.ones_like(self.law)
        for likelihood in self.likelihoods[: -LAG - 1 : -1]:
            later = self.to @ (later * likelihood) @ self.to.T
            later /= later.max()
        law = self.laws[-1 - LAG] * later
        return np.asarray(law / law.sum())

    def compare(self, moment: cw.FrameEstimate, law: NDArray[np.float64]) -> tuple[float, float, float]:
        """How far the tracker's intensity is from the exact one, and how much more it states than is exact.

        That is the expected number of sources in its vicinities, and the probability of its most likely count.
        """
        one = law.sum(axis=0) + law.sum(axis=1)
        intensity = one[: self.n] + one[self.n : -1]
        none, both = law[-1, -1], law[:-1, :-1].sum()
        count = int(moment.counts.argmax())
        held = [(moment.intensity - intensity)[source.vicinity].sum() for source in moment.sources]
        surplus = moment.counts[count] - (none, 1 - none - both, both)[count]
        return float(np.abs(moment.intensity - intensity).sum() / 2), float(np.mean(held or [0.0])), float(surplus)


def test_vicinities_and_counts_are_those_of_the_exact_law() -> None:
    """Judged by the law itself, not by where a few simulated people happen to be."""
    plan = flat()
    cloak = cw.Cloak(plan, epsilon=2.0, delta=1e-5, alpha=0.1, readings_per_window=10, design="least-error")
    compared: dict[str, list[tuple[float, float, float]]] = {"live": [], "settled": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        clean = [plan.matrix[:, list(there.values())].sum(axis=1) for there in people(plan, rng, 2)]
        tracker = cw.Tracker(cloak, motion=MOTION, max_sources=2, seed=seed, lag=LAG)
        exact = ExactLaw(tracker)
        for k, frame in enumerate(cloak.simulate(np.array(clean), rng=rng)):
            exact.step(frame)
            now = tracker.step(frame, MINUTE * k)
            compared["live"].append(exact.compare(now, exact.laws[-1]))
            compared["settled"] += [exact.compare(moment, exact.settled()) for moment in now.final]
    for name, found in compared.items():
        apart, held, counted = np.mean(found, axis=0)
        assert apart < 0.13, (name, apart)
        assert abs(held) < 0.02, (name, held)
        assert abs(counted) < 0.03, (name, counted)


def test_two_sources_side_by_side_are_as_uncertain_as_all_their_readings_say() -> None:
    """Beliefs about each alone would count the same readings again and again, and become too sure."""
    line, sigma, frames = HeatLine(n=50, m=25, T=0.05), 1.0, 150
    columns, clean = line.matrix / sigma, line.apply(sources(line, [0.4, 0.56]))
    apart, held = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        readings = clean + rng.normal(0, sigma, (frames, len(clean)))
        still = cw.Motion.still(mean_present_s=1e9, mean_absent_s=1e9)
        tracker = cw.Tracker(line, sigma=sigma, max_sources=2, motion=still, chains=32, seed=seed)
        for k, frame in enumerate(readings):
            now = tracker.step(frame, MINUTE * k)
        gain, shared = columns.T @ readings.sum(axis=0) / sigma, frames * columns.T @ columns
        weight = np.add.outer(gain, gain) - np.add.outer(shared.diagonal(), shared.diagonal()) / 2 - shared
        law = np.exp(weight - weight.max())
        surplus = now.intensity - 2 * law.sum(axis=0) / law.sum()
        apart.append(np.abs(surplus).sum() / 2)
        held.append(np.mean([surplus[source.vicinity].sum() for source in now.sources]))
    assert np.mean(apart) < 0.35, apart
    assert np.mean(held) < 0.1, held


class Judged:
    """What was stated at the moments of some scenes, and what was true: one sum for each scene."""

    def __init__(self) -> None:
        self.held: list[tuple[float, float, int]] = []  # vicinities that hold their person, the same as stated, number
        self.counted: list[tuple[float, float, int]] = []
        self.same: list[tuple[float, float, int]] = []
        self.pairs: list[tuple[float, float]] = []  # the stated probability to be still the same, and whether it is

    def add(self, moments: list[cw.FrameEstimate], scene: Scene, distances: NDArray[np.float32]) -> None:
        held: list[tuple[float, float]] = []
        counted, same, first = [], [], dict[int, int]()
        for moment, there in zip(moments, scene, strict=False):
            counted.append((float(moment.counts[len(there)] == moment.counts.max()), float(moment.counts.max())))
            names, places = list(there), list(there.values())
            rows, columns = linear_sum_assignment(
                distances[np.ix_([source.place for source in moment.sources], places)]
            )
            tracks = {track.label: track for track in moment.tracks}
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
                source, label = moment.sources[i], moment.labels[i]
                stated = moment.presence[:, source.vicinity].sum(axis=1).max() / source.probability
                held.append((float(places[j] in source.vicinity), float(stated)))
                same.append((float(first.setdefault(label, names[j]) == names[j]), tracks[label].identity_probability))
        self.pairs += [(stated, true) for true, stated in same]
        for sums, values in ((self.held, held), (self.counted, counted), (self.same, same)):
            sums.append((sum(true for true, _ in values), sum(stated for _, stated in values), len(values)))


def gap(sums: list[tuple[float, float, int]]) -> tuple[float, float]:
    """How much more often something is true than stated, and the standard error over scenes."""
    true, stated, number = np.array(sums).T
    difference = (true - stated).sum() / number.sum()
    rest = true - stated - difference * number
    return float(difference), float(np.sqrt((rest**2).sum()) / number.sum())


def test_a_smoothed_past_is_calibrated() -> None:
    plan = flat()
    cloak = cw.Cloak(plan, epsilon=2.0, delta=1e-5, alpha=0.1, readings_per_window=10, design="least-error")
    judged, times = Judged(), MINUTE * np.arange(FRAMES)
    for seed in range(24):
        rng = np.random.default_rng(seed)
        scene = people(plan, rng)
        clean = np.array([plan.matrix[:, list(there.values())].sum(axis=1) for there in scene])
        past = cw.track(cloak.simulate(clean, rng=rng), cloak, times=times, motion=MOTION, max_sources=MOST, seed=seed)
        judged.add(list(past.moments), scene, plan.space.distance_table)
    for sums, most in ((judged.held, 0.03), (judged.counted, 0.03), (judged.same, 0.05)):
        difference, error = gap(sums)
        assert abs(difference) < most + 2 * error, (difference, error)
    true = sum(held for held, _, _ in judged.held) / sum(number for _, _, number in judged.held)
    assert 0.86 < true < 0.96, true  # vicinities are whole cells, which hold 92 % rather than 90
    stated, same = np.array(judged.pairs).T
    about = (stated > 0.7) & (stated < 0.9)
    assert 0.7 < np.mean(same[about]) < 0.9, "who is the same with 80 % is the same in 70 to 90 %"
    assert np.mean(same[stated > 0.9]) > 0.85
