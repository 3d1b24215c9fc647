"""People followed over time: single frames, the mean of a minute, the filter and the smoother on the same readings."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from papers.drawing import FAINT, SERIES, draw_bars
from papers.experiment import Experiment, Run, Size
from papers.followed_people import (
    LEAD,
    SECONDS,
    WINDOW,
    Marks,
    Scene,
    distances,
    filtered,
    minute,
    noisy,
    office,
    single,
    single_counted,
    sitting,
    smoothed,
    strolling,
    switches,
)
from papers.recordings import POSITIONS
from papers.result import Finding, Goal
from papers.rows import Mean, Row, pick

# numbers of people, runs and frames of people who sit, runs and frames of walkers
FULL, QUICK, PROBE = ((1, 2, 3), 12, 100, 9, 40), ((2,), 2, 4, 2, 33), ((1,), 2, 5, 2, 5)
RECORDED_RUNS = 3
NEAR = {1: 0.10, 2: 0.16, 3: 0.22}  # metres that the filter has to reach for people who sit
NEAR_RECORDED = {"filtered": 0.60, "smoothed": 0.50}
BLOCK = 10  # frames whose mean counts as one trial: errors of frames in a row are alike


class Method(StrEnum):
    """A way to locate people."""

    SINGLE = "single frames"
    COUNTED = "single frames, count known"
    MINUTE = "mean of a minute"
    FILTERED = "filtered"
    SMOOTHED = "smoothed"


SIT, WALK, RECORDED = "sit and change seats", "walk at 0.8 m/s", "recorded movement"


def of(scene: Row, method: Method) -> Mean:
    """The error of a method in a scene."""
    mean: Mean = pick(scene.methods, method=method).mean
    return mean


def title(scene: Row) -> str:
    """How many people, and what they do."""
    return f"{scene.people} who {scene.kind}" if scene.people else str(scene.kind)


class FollowedScenes(Finding):
    """How well people are followed; the last scene of all but a probe is the recorded movement."""

    size = (9.0, 4.6)

    def goals(self) -> tuple[Goal, ...]:
        goals = []
        for scene in self.scenes:
            if scene.kind == SIT:
                goals.append(_near(scene, Method.FILTERED, NEAR[scene.people]))
            elif scene.kind == WALK:
                live, alone = of(scene, Method.FILTERED), of(scene, Method.COUNTED)
                text = f"{title(scene)}: filtered not worse than single frames whose count is known"
                goals.append(Goal(text, f"{live:.2f}", live.value <= alone.value))
            else:
                goals += [_near(scene, Method(name), most) for name, most in NEAR_RECORDED.items()]
        return tuple(goals)

    def text(self) -> str:
        return (
            f"People in a flat of three rooms warm 80 sensors, which send a reading every {SECONDS:g} s; all {WINDOW} "
            "readings of a minute together hide a move by 0.1 m at (8, 1e-5). But for one column, no method knows how "
            f"many people there are, only that there are at most four. All have the same readings."
        )

    def draw(self, figure: Figure) -> None:
        axes = figure.add_subplot()
        names = [title(scene).replace(" and ", "\nand ").replace(" at ", "\nat ") for scene in self.scenes]
        series = {str(method): [of(scene, method) for scene in self.scenes] for method in Method}
        draw_bars(axes, names, series, colors=(FAINT, SERIES[3], SERIES[1], SERIES[0], SERIES[2]))
        axes.tick_params(axis="x", labelsize=7)
        axes.set_ylabel("distance of a person to the mark, m")
        axes.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)


def _near(scene: Row, method: Method, most: float) -> Goal:
    found = of(scene, method)
    return Goal(f"{title(scene)}: {method} at most {most:.2f} m", f"{found:.2f}", found.value <= most)


def scene_errors(kind: str, people: int, scenes: Sequence[Scene], seed: int) -> Row:
    """Follow people through scenes with all methods: mean distances to their marks in metres, over runs.

    `counted` is how often the filter counts people right, `changes` how often the label of a person's mark changes.
    """
    errors: dict[Method, list[FloatArray]] = {method: [] for method in Method}
    right, changes = [], 0
    for number, scene in enumerate(scenes):
        readings = noisy(scene, 1000 * seed + number)
        live, labels, counts = filtered(readings)
        marks: dict[Method, Marks] = {
            Method.SINGLE: single(readings),
            Method.COUNTED: single_counted(readings, scene),
            Method.MINUTE: minute(readings),
            Method.FILTERED: live,
            Method.SMOOTHED: smoothed(readings),
        }
        for method, found in marks.items():
            errors[method].append(distances(found, scene))
        right.append(np.mean(counts[LEAD:] == np.array([len(each) for each in scene])[LEAD:]))
        changes += switches(live, labels, scene)
    methods = tuple(
        Row(method=method, mean=Mean.of(np.array([run.mean() for run in runs])), blocks=_blocks(runs))
        for method, runs in errors.items()
    )
    return Row(
        kind=kind,
        people=people,
        frames=sum(len(scene) for scene in scenes),
        methods=methods,
        counted=round(float(np.mean(right)), 6),
        changes=changes,
    )


def _blocks(runs: Sequence[FloatArray]) -> tuple[float, ...]:
    """Means of frames in a row; a rest that is shorter than a block is left out, unless a run has no more."""
    means = []
    for run in runs:
        number = max(1, len(run) // BLOCK)
        means += [float(part.mean()) for part in np.array_split(run[: max(BLOCK * number, 1)], number)]
    return tuple(np.round(means, 6).tolist())


def _work(run: Run) -> FollowedScenes:
    counts, sittings, sits, runs, walks = run.choose(FULL, QUICK, PROBE)
    kinds: list[tuple[str, int, Callable[[int], Scene]]] = [(SIT, k, partial(sitting, k, sits)) for k in counts]
    kinds += [(WALK, k, partial(strolling, k, walks)) for k in counts]
    if run.size is not Size.PROBE:
        kinds.append((RECORDED, 0, partial(_recorded, run.choose(None, walks, walks))))
    found = []
    for kind, people, make in kinds:
        often = {SIT: sittings, WALK: runs, RECORDED: min(runs, RECORDED_RUNS)}[kind]
        scenes = [make(1000 * run.seed + number) for number in range(often)]
        found.append(scene_errors(kind, people, scenes, run.seed))
    return FollowedScenes(scenes=tuple(found))


def _recorded(frames: int | None, _: int) -> Scene:
    """The recorded movement, which is the same in every run; only the noise differs."""
    return office()[:frames]


EXPERIMENT = Experiment(
    "tracking",
    "People followed over time: single frames, the mean of a minute, filtered and smoothed",
    FollowedScenes,
    _work,
    minutes=30.0,
    data=(POSITIONS,),
)
