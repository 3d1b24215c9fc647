"""Tracks: the exact law on small spaces, and what a tracker does with bad input."""

import math
from functools import cache
from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import expm

import cloakwork as cw
from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, ReadingError

PLACES, SENSORS = 4, 3
TIMES = [0.0, 20.0, 50.0, 60.0, 100.0]  # unequal intervals
MOTION = cw.Motion(mean_sit_s=60.0, mean_walk_s=15.0, speed=0.005, mean_present_s=200.0, mean_absent_s=120.0)


def small() -> cw.HeatLine:
    return cw.HeatLine(n=PLACES, m=SENSORS, T=0.02)


def one_source(seconds: float) -> FloatArray:
    """Transition probabilities of one source, from the definition in `Motion`: states (sits, walks, absent)."""
    n = PLACES
    at = np.arange(1, n + 1) / n
    begin, settle = 1 - math.exp(-seconds / MOTION.mean_sit_s), min(0.3, 1 - math.exp(-seconds / MOTION.mean_walk_s))
    rates = np.array(
        [[-1 / MOTION.mean_present_s, 1 / MOTION.mean_present_s], [1 / MOTION.mean_absent_s, -1 / MOTION.mean_absent_s]]
    )
    [_, leave], [appear, _] = expm(seconds * rates)
    length = max(MOTION.speed * seconds, 1 / n)
    table = np.zeros((2 * n + 1, 2 * n + 1))
    for i in range(n):
        far = np.abs(at - at[i])
        walk = np.where(far <= 6 * length, np.exp(-far / length), 0)
        walk /= walk.sum()
        for state, moving in ((i, begin), (n + i, 1.0)):
            table[state, :n] += (1 - leave) * moving * settle * walk
            table[state, n:-1] += (1 - leave) * moving * (1 - settle) * walk
            table[state, -1] = leave
        table[i, i] += (1 - leave) * (1 - begin)
    table[-1, :n], table[-1, n:-1], table[-1, -1] = appear * settle / n, appear * (1 - settle) / n, 1 - appear
    assert np.allclose(table.sum(axis=1), 1)
    return table


@cache
def all_sources(seconds: float, most: int) -> FloatArray:
    """Transition probabilities of all joint states."""
    table = one_source(seconds)
    return table if most == 1 else np.asarray(np.kron(all_sources(seconds, most - 1), table), dtype=np.float64)


def exact(
    readings: FloatArray, sigma: float, most: int, *, smoothed: bool, strengths: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Expected sources at each place and probabilities of counts at each time, summed over all joint states.

    `strengths` (rows, most) are strengths of the sources, one row as likely as another.
    """
    rows = np.ones((1, most)) if strengths is None else strengths
    laws, evidence = zip(*(exact_given(readings, sigma, row, smoothed=smoothed) for row in rows), strict=True)
    weights = np.exp(np.array(evidence) - np.max(evidence, axis=0))  # (rows, times)
    mixed = np.einsum("rt,rts->ts", weights / weights.sum(axis=0), np.array(laws))
    joint = list(product(range(2 * PLACES + 1), repeat=most))
    places = [[s % PLACES for s in states if s < 2 * PLACES] for states in joint]
    present = np.array([np.bincount(at, minlength=PLACES) for at in places])
    return mixed @ present, mixed @ np.eye(most + 1)[[len(at) for at in places]]


def exact_given(
    readings: FloatArray, sigma: float, strengths: FloatArray, *, smoothed: bool
) -> tuple[FloatArray, FloatArray]:
    """The law of all joint states at each time (times, states), and the log evidence that it rests on (times,)."""
    n, model, most = PLACES, small(), len(strengths)
    joint = list(product(range(2 * n + 1), repeat=most))
    counts = np.array([sum(state < 2 * n for state in states) for states in joint])
    sits = MOTION.mean_sit_s / (MOTION.mean_sit_s + MOTION.mean_walk_s)
    places = np.concatenate([np.full(n, sits / n), np.full(n, (1 - sits) / n), [1.0]])
    law = np.array([math.prod(places[s] for s in states) for states in joint])
    law /= np.array([math.comb(most, k) for k in counts])  # each count alike
    law /= law.sum()
    columns = np.concatenate([model.matrix, model.matrix, np.zeros((SENSORS, 1))], axis=1)
    means = np.array([columns[:, list(states)] @ strengths for states in joint])
    laws, likelihoods, steps, evidence = [], [], [], [0.0]
    for t, frame in enumerate(readings):
        if t:
            steps.append(all_sources(TIMES[t] - TIMES[t - 1], most))
            law = law @ steps[-1]
        likelihood = np.exp(-((frame - means) ** 2).sum(axis=1) / (2 * sigma**2))
        evidence.append(evidence[-1] + math.log(law @ likelihood))
        law = law * likelihood / (law @ likelihood)
        laws.append(law)
        likelihoods.append(likelihood)
    if smoothed:
        later = np.ones(len(joint))
        for t in range(len(readings) - 2, -1, -1):
            later = steps[t] @ (likelihoods[t + 1] * later)
            later /= later.max()
            laws[t] = laws[t] * later / (laws[t] @ later)
        evidence = [evidence[-1]] * len(evidence)
    return np.array(laws), np.array(evidence[1:])


@pytest.mark.parametrize("strength", [(0.2, 1.0), None])
def test_unknown_strengths_are_integrated_out(strength: tuple[float, float] | None, rng: np.random.Generator) -> None:
    """Each source with its own strength, or all with the same: against sums over a grid of strengths."""
    sigma = 1.5  # more noise than sources between places would need
    readings = noisy([[0], [0, 3], [0, 3]], rng)
    grid = (np.arange(12) + 0.5) / 12
    rows = np.array(list(product(0.2 + 0.8 * grid, repeat=2))) if strength else np.repeat(grid[:, None], 2, axis=1)
    drawn = []
    for seed in range(24):
        tracker = cw.Tracker(small(), sigma=sigma, motion=MOTION, max_sources=2, strength=strength, seed=seed)
        moments = [tracker.step(frame, time) for frame, time in zip(readings, TIMES, strict=False)]
        drawn.append([(moment.intensity, moment.counts) for moment in moments])
    close(drawn, *exact(readings, sigma, 2, smoothed=False, strengths=rows))


def noisy(truth: list[list[int]], rng: np.random.Generator, sigma: float = 1.5) -> FloatArray:
    clean = np.array([small().matrix[:, places].sum(axis=1) for places in truth])
    return clean + sigma * rng.standard_normal(clean.shape)


@pytest.mark.parametrize("most", [1, 2])
def test_filtered_and_settled_laws_are_the_exact_ones(most: int, rng: np.random.Generator) -> None:
    """Sources that sit, walk, appear and disappear, against forward-backward sums over all joint states."""
    lag, readings = 2, noisy([[0], [0], [0, 3][:most], [3, 3][:most], [3]], rng)
    live, settled = [], []
    for seed in range(4 if most == 1 else 40):
        tracker = cw.Tracker(small(), sigma=1.5, motion=MOTION, max_sources=most, seed=seed, lag=lag)
        moments: list[cw.FrameEstimate] = []
        later: list[cw.FrameEstimate] = []
        for frame, time in zip(readings, TIMES, strict=True):
            moments.append(tracker.step(frame, time))
            later += moments[-1].final
        assert [moment.time for moment in later] == TIMES[:-lag]
        live.append([(moment.intensity, moment.counts) for moment in moments])
        settled.append([(moment.intensity, moment.counts) for moment in later])
    close(live, *exact(readings, 1.5, most, smoothed=False))
    for t in range(len(TIMES) - lag):
        intensity, counts = exact(readings[: t + lag + 1], 1.5, most, smoothed=True)
        close([moments[t : t + 1] for moments in settled], intensity[t : t + 1], counts[t : t + 1])


def close(drawn: list[list[tuple[FloatArray, FloatArray]]], intensity: FloatArray, counts: FloatArray) -> None:
    """Compare the mean over seeds with exact intensities and counts, moment by moment."""
    for t in range(len(intensity)):
        assert np.mean([moments[t][0] for moments in drawn], axis=0) == pytest.approx(intensity[t], abs=0.03)
        assert np.mean([moments[t][1] for moments in drawn], axis=0) == pytest.approx(counts[t], abs=0.03)


def steps(
    readings: FloatArray, times: list[float], model: cw.Physics | None = None, **settings: object
) -> cw.FrameEstimate:
    """The last result of a tracker that takes these frames."""
    settings = {"sigma": 1.0, "motion": MOTION, "max_sources": 1} | settings
    tracker = cw.Tracker(model or small(), **settings)  # type: ignore[arg-type]
    for frame, time in zip(readings, times, strict=True):
        now = tracker.step(frame, time)
    return now


def test_a_late_frame_counts_like_one_in_time(rng: np.random.Generator) -> None:
    readings = small().matrix[:, [1] * 5].T + rng.standard_normal((5, SENSORS))
    late = [0, 1, 3, 4, 2]
    in_time = steps(readings, TIMES)
    assert steps(readings[late], [TIMES[k] for k in late]).intensity == pytest.approx(in_time.intensity, abs=1e-5)


def test_a_missing_sensor_says_nothing(rng: np.random.Generator) -> None:
    """A frame without one sensor has the law of a physics without it; one without any sensor only lets time pass."""
    model = small()
    readings = model.matrix[:, [1] * 5].T + rng.standard_normal((5, SENSORS))
    all_sensors, fewer = (cw.Matrix(matrix, space=model.space) for matrix in (model.matrix, model.matrix[1:]))
    readings[:, 0] = np.nan
    whole, part = steps(readings, TIMES, all_sensors), steps(readings[:, 1:], TIMES, fewer)
    assert whole.intensity == pytest.approx(part.intensity, abs=1e-5)
    hour = [200.0 + 60 * k for k in range(60)]
    frames = np.concatenate([readings, np.full((60, SENSORS), np.nan)])
    silent = [steps(frames, TIMES + hour, seed=seed) for seed in range(4)]
    assert all(moment.fit.p_value == 1 for moment in silent)
    # after an hour without readings, only how often sources are there is known
    assert np.mean([moment.counts[1] for moment in silent]) == pytest.approx(
        MOTION.mean_present_s / (MOTION.mean_present_s + MOTION.mean_absent_s), abs=0.01
    )


def test_what_the_model_excludes_shows_in_the_fit() -> None:
    """Three sources where two are allowed, and a sensor that nothing explains."""
    line = cw.HeatLine(n=50, m=25, T=0.05)
    three = line.apply(cw.sources(line, [0.2, 0.5, 0.8]))
    assert cw.Tracker(line, sigma=0.2, max_sources=2).step(three, 0.0).fit.doubtful
    broken = line.apply(cw.sources(line, [0.5]))
    broken[7] += 10
    now = cw.Tracker(line, sigma=0.2, max_sources=2).step(broken, 0.0)
    assert now.fit.set_aside == (7,)
    assert [source.at for source in now.sources] == pytest.approx([0.5], abs=0.03)


def test_a_motion_that_no_data_fit_shows_in_the_fit() -> None:
    """Sources that come and go only at one end and hardly move cannot be at the other end a second later."""
    line = cw.HeatLine(n=50, m=25, T=0.02)
    slow = cw.Motion(mean_sit_s=1e6, speed=1e-4, entrances=(0.02,))
    tracker = cw.Tracker(line, sigma=0.1, max_sources=2, motion=slow)
    fits = [tracker.step(line.apply(cw.sources(line, [at])), float(k)).fit for k, at in enumerate([0.5] * 5 + [0.9])]
    assert not any(fit.doubtful for fit in fits[:5])
    assert fits[5].doubtful


def test_a_source_of_unknown_strength_has_the_weight_that_the_readings_show() -> None:
    line = cw.HeatLine(n=50, m=25, T=0.02)
    tracker = cw.Tracker(line, sigma=0.2, max_sources=2, strength=(0.2, 3.0), motion=cw.Motion.still())
    readings = 2 * line.apply(cw.sources(line, [0.2])) + 0.5 * line.apply(cw.sources(line, [0.8]))
    for k in range(10):  # more than the window holds
        now = tracker.step(readings, 60.0 * k)
    weights = {round(source.at, 1): source.weight for source in now.sources}  # type: ignore[call-overload]
    assert weights == pytest.approx({0.2: 2.0, 0.8: 0.5}, abs=0.15)


def test_a_track_keeps_its_label_while_its_source_is_there() -> None:
    line = cw.HeatLine(n=50, m=25, T=0.02)
    tracker = cw.Tracker(
        line, sigma=0.2, max_sources=3, motion=cw.Motion(speed=0.01, mean_present_s=60.0, mean_absent_s=60.0)
    )
    scene = [[0.2, 0.8]] * 6 + [[0.2]] * 6 + [[0.2, 0.6]] * 6
    moments = [tracker.step(line.apply(cw.sources(line, at)), 3.0 * k) for k, at in enumerate(scene)]
    stays, goes = ({track.label for track in moments[k].tracks} for k in (5, 11))
    assert len(stays) == 2
    assert len(goes) == 1
    assert goes < stays
    [first] = goes
    last = {track.label: track for track in moments[-1].tracks}
    assert set(last) - stays, "the third source has a label of its own"
    assert last[first].since == 0
    assert len(last[first].times) == len(scene)
    assert last[first].identity_probability > 0.9
    assert all(len(moment.labels) == len(moment.sources) for moment in moments)


def labels(moment: cw.FrameEstimate) -> dict[float, int]:
    """The label of each source, by its position."""
    return {round(source.at, 1): label for source, label in zip(moment.sources, moment.labels, strict=True)}  # type: ignore[call-overload]


@pytest.mark.parametrize("nodes", [[11] * 12, [11] * 6 + [0] * 6])
def test_a_rumour_that_stays_or_moves_along_an_edge_of_a_network_is_one_track(nodes: list[int]) -> None:
    club, rng = cw.Graph(nx.karate_club_graph(), tau=0.1), np.random.default_rng(2)
    assert club.space.distances(11)[0] == 1
    tracker = cw.Tracker(
        club, sigma=0.1, motion=cw.Motion(mean_sit_s=600.0, mean_walk_s=60.0, speed=1 / 60), max_sources=2
    )
    frames = club.matrix[:, nodes].T + 0.1 * rng.standard_normal((len(nodes), club.sensors))
    moments = [tracker.step(frame, 60.0 * k) for k, frame in enumerate(frames)]
    for late in (5, 11):
        [source] = moments[late].sources
        assert (source.place, source.at) == (nodes[late], nodes[late])
        assert moments[late].counts.argmax() == 1
    assert moments[5].labels == moments[11].labels


def test_a_settled_track_has_the_label_of_the_live_one() -> None:
    line = cw.HeatLine(n=50, m=25, T=0.02)
    tracker = cw.Tracker(
        line, sigma=0.2, max_sources=3, motion=cw.Motion(speed=0.01, mean_present_s=60.0, mean_absent_s=60.0), lag=3
    )
    live: list[cw.FrameEstimate] = []
    settled: list[cw.FrameEstimate] = []
    for k, at in enumerate([[0.2, 0.8]] * 6 + [[0.2]] * 6 + [[0.2, 0.6]] * 8):
        live.append(tracker.step(line.apply(cw.sources(line, at)), 3.0 * k))
        settled += live[-1].final
    assert [moment.time for moment in settled] == [moment.time for moment in live[:-3]]
    for now, later in zip(live, settled, strict=False):
        assert labels(now) == labels(later)


def test_the_probability_of_anyone_at_some_places_is_that_of_the_count(rng: np.random.Generator) -> None:
    model = small()
    readings = model.matrix[:, [1, 1, 2]].T + rng.standard_normal((3, SENSORS))
    now = steps(readings, TIMES[:3], model)
    assert now.anyone(range(PLACES)) == pytest.approx(now.counts[1], abs=1e-5)
    assert now.anyone([1, 1]) == pytest.approx(now.intensity[1], abs=1e-5)
    assert now.anyone([]) == 0
    two = steps(readings, TIMES[:3], model, max_sources=2)
    assert max(two.presence.sum(axis=1)) <= two.anyone(range(PLACES)) <= 1


def test_a_restarted_tracker_continues_the_labels() -> None:
    """It takes the last frames again; tracks keep their labels, and new ones have labels that no track had."""
    line = cw.HeatLine(n=50, m=25, T=0.02)
    frames = [line.apply(cw.sources(line, at)) for at in ([0.2, 0.8], [0.2, 0.5, 0.8])]
    tracker, restarted = (
        cw.Tracker(line, sigma=0.2, max_sources=3, motion=cw.Motion.still(), seed=seed) for seed in (0, 1)
    )
    for time in range(4):
        before = tracker.step(frames[0], time)
        again = restarted.step(frames[0], time)
    restarted.resume({track.label + 40: track.places[-1] for track in before.tracks}, 50)
    assert len(again.tracks) == 2
    now = restarted.step(frames[0], 4)
    assert labels(now) == {at: label + 40 for at, label in labels(before).items()}
    named = set(now.labels)
    assert all(track.since == 0 for track in now.tracks)
    for time in range(5, 9):
        now = restarted.step(frames[1], time)
    assert {label for label in now.labels if label not in named} == {51}
    restarted.resume({track.label: track.places[-1] for track in now.tracks})
    assert labels(restarted.step(frames[1], 9)) == labels(now), "what is right stays as it is"


def test_a_frame_that_comes_again_with_more_readings_counts_as_if_they_had_come_at_once() -> None:
    line = cw.HeatLine(n=50, m=25, T=0.02)
    whole = line.apply(cw.sources(line, [0.3]))
    part = np.where(np.arange(25) < 20, np.nan, whole)
    tracker = cw.Tracker(line, sigma=0.2, max_sources=2, motion=cw.Motion.still())
    for time in range(4):
        before = tracker.step(part, time)
    for time in range(4):
        now = tracker.step(whole, time, again=True)
    assert now.time == 3
    assert before.counts[1] < 0.9
    assert now.counts[1] > 0.99
    assert [source.place for source in now.sources] == [line.space.index(0.3)]


def test_tracks_hold_the_last_hundred_moments_and_the_whole_past_all_of_them() -> None:
    line = cw.HeatLine(n=10, m=5, T=0.02)
    frames = [line.apply(cw.sources(line, [0.5]))] * 120
    past = cw.track(frames, line, sigma=0.2, times=range(120), max_sources=1)
    [last], [whole] = past.moments[-1].tracks, past.tracks
    assert (len(last.times), last.since, last.times[-1]) == (100, 0, 119)
    assert (whole.times, whole.since) == (tuple(range(120)), 0)


def test_wrong_input_is_refused_and_changes_nothing() -> None:
    line = small()
    tracker = cw.Tracker(line, sigma=1.0, motion=MOTION, max_sources=1)
    zero = np.zeros(SENSORS)
    for k in range(10):
        tracker.step(zero, 10.0 * k)
    for time in (90.0, -5.0, math.nan):  # a second frame of one time, too late, no time
        with pytest.raises(InputError) as problem:
            tracker.step(zero, time)
        assert problem.value.values["time"] == pytest.approx(time, nan_ok=True)
    for readings in (np.zeros(SENSORS + 1), np.full(SENSORS, np.inf)):
        with pytest.raises(ReadingError):
            tracker.step(readings, 100.0)
    again = cw.Tracker(line, sigma=1.0, motion=MOTION, max_sources=1)
    for k in range(10):
        again.step(zero, 10.0 * k)
    assert tracker.step(zero, 100.0).intensity == pytest.approx(again.step(zero, 100.0).intensity)
    for wrong in (
        {"max_sources": 0},
        {"max_sources": 99},
        {"strength": -1.0},
        {"confidence": 1.0},
        {"lag": -1},
        {"chains": 3},
    ):
        with pytest.raises(InputError):
            cw.Tracker(line, sigma=1.0, **wrong)
    with pytest.raises(InputError):
        cw.track(np.zeros((3, SENSORS)), line, sigma=1.0, times=[0.0, 1.0])
    with pytest.raises(InputError):
        cw.Motion(mean_sit_s=0.0)
