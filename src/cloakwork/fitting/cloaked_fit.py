"""Fits reach and strength of a floor plan to cloaked readings alone, by their likelihood over all paths of sources.

This is post-processing of released readings, so it costs no privacy.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork._files import write_durably
from cloakwork.errors import InputError, ReadingError, SiteError
from cloakwork.fitting.fitted import Fitted, covering, written_strength
from cloakwork.fitting.responses import Responses
from cloakwork.physics import Tolerance
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, site_tracker, values_of
from cloakwork.recovery import FloorTracker, Progress, WeighedFrame
from cloakwork.site import Site

FEWEST_FRAMES = 60
MOST_FRAMES = 2_000  # the paths of all frames are in memory at once
RARE = 0.2  # a sensor that misses more frames than this is left out
STRONG, REACHES = 1.5, (0.8, 1.25)  # times the stated strength and reach, to start from
FIRST_SWEEPS = 6  # over all frames before the first step
EXCHANGES = 4  # of paths, after each sweep: one joins what belongs together, and more hardly change it
SEARCH = 14  # steps until the parameters have settled, of one sweep each
AVERAGED = 12  # more, of two sweeps each, whose mean is the estimate
LARGEST = 0.15  # change of a logarithm, or of the offset over the noise, in one step
MEMORY = 0.8  # by which earlier draws count for the next step
LEAST_KNOWN = 0.15  # of the information of known paths: a direction with less is not trusted for a step
NOTHING = 1e-3  # information that is none, so that an empty flat can be computed with
SLOPE = 0.01  # of the logarithm of the reach, for its derivative
KEPT = ("at", "scores", "information", "variance", "people")  # of a search
DRAWN = ("states", "tracks", "strengths")  # of its paths


@dataclass(frozen=True, eq=False)
class CloakedFit:
    """Physics fitted to cloaked readings: `reach` (metres), `strength`, and a common `offset` of baselines.

    `people` is the mean number of sources that were there, `ends` are the reach and strength where each search ended.

    Notes
    -----
    The marginal likelihood sums over all paths of all sources. Its gradient is the mean gradient of the likelihood of
    known paths over draws from their posterior (Fisher's identity), and its curvature the mean curvature less the
    variance of the gradient (Louis, 1982). Newton steps on these, from draws that continue from step to step, lead to
    the maximum; the mean over the last steps is the estimate, and the curvature gives its error. Where the site states
    a drift, its offsets are drawn along with the paths, and `offset` stays 0: they explain a common one as well.
    """

    site: Site
    frames: int
    reach: Fitted
    strength: Fitted
    offset: Fitted
    people: float
    ends: tuple[tuple[float, float], ...]

    @property
    def agree(self) -> bool:
        """Whether all searches ended within the intervals; if not, the likelihood has several maxima."""
        return all(
            found.low <= end <= found.high
            for ends in self.ends
            for found, end in zip((self.reach, self.strength), ends, strict=True)
        )

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance that covers the confidence region; the stated errors of gains come on top."""
        written, stated = written_strength(self.site, self.strength), self.site.tolerance.gain
        share = max(1.0, self.strength.value / written) / self.strength.value
        ends = [(1 - stated) * self.strength.least * share, (1 + stated) * self.strength.most * share]
        return covering(self.site, reach=self.reach, gains=ends, footprint=None, strength=written)


def fit_cloaked(
    site: Site,
    cloak: Cloak,
    frames: Sequence[Frame],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    kept: Path | None = None,
) -> CloakedFit:
    """Fit reach, strength and a common offset of the baselines to cloaked frames, in order of time.

    `progress` is called with (steps done, steps in total). The sources move as `site.motion` says. With `kept`, the
    state is in that file after each step: the same call later goes on from there, with the same result.

    Notes
    -----
    Count and strength trade off: twice as many sources of half the strength read much the same. Draws of paths easily
    add a source and hardly ever merge two, so each search starts from few strong sources. The likelihood may have
    several maxima: there is a search from either side of the stated reach, and the estimate is the mean of their ends.
    """
    shown, steps, taken = progress or (lambda *_: None), SEARCH + AVERAGED, list(frames[-MOST_FRAMES:])
    file = None if kept is None else KeptSearch(kept, site, cloak, taken)
    state = {} if file is None else file.read()
    ends = list(state.get("ends", ()))
    for number in range(len(ends), len(REACHES)):
        search = _Search(site, cloak, taken, seed + number, REACHES[number])
        visited = list(state.get("visited", ()))
        search.restore(state) if visited else search.begin()
        state = {}
        for step in range(len(visited), steps):
            # an offset would first imitate sources that are still missing
            search.free = 2 if step < SEARCH // 2 else search.most_free
            search.step(*((1, 1.0) if step < SEARCH else (2, 1 / (step - SEARCH + 2))))
            visited.append(search.at)
            if file is not None:
                file.save(ends=ends, visited=visited, **search.state())
            shown(number * steps + step + 1, len(REACHES) * steps)
        ends.append(np.mean(visited[SEARCH:], axis=0))
    return search.result(np.array(ends))


class KeptSearch:
    """The state of a fit, arrays by their names, in a file that belongs to one site, noise and period of readings."""

    def __init__(self, path: Path, site: Site, cloak: Cloak, frames: list[Frame]) -> None:
        self._path = path
        digest = sha256(f"{version('cloakwork')} {site.spec.model_dump_json()}".encode())
        for values in (cloak.total_sigmas, cloak.steps, *(part for f in frames for part in (f.steps, f.present))):
            digest.update(np.ascontiguousarray(values).tobytes())
        digest.update(repr([frame.time for frame in frames]).encode())
        self._digest = digest.hexdigest()

    def read(self) -> dict[str, NDArray[Any]]:
        """Read the kept arrays, none if there is no file yet; a file of another fit is refused."""
        if not self._path.exists():
            return {}
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                state = dict(file)
        except (OSError, ValueError, EOFError, BadZipFile):
            state = {}
        if str(state.get("digest")) != self._digest:
            raise InputError(
                f"{self._path}: this is not a file of this fit. Give that of an interrupted fit to the same readings, "
                "or the name of a new file.",
                path=str(self._path),
            )
        return state

    def save(self, **arrays: object) -> None:
        """Replace what was kept, as a whole."""
        plain: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
        file = BytesIO()
        np.savez(file, allow_pickle=False, digest=self._digest, **plain)
        write_durably(self._path, file.getvalue())


class _Search:
    """The parameters (log reach, log strength, offset), and draws of the paths given them."""

    def __init__(self, site: Site, cloak: Cloak, frames: Sequence[Frame], seed: int, reach: float) -> None:
        self.site, self.model = site, Responses.of_site(site)
        values = np.array([values_of(frame, site, cloak) for frame in frames]).reshape(len(frames), -1)
        if cloak.shared is not None:
            raise SiteError("the fit to cloaked readings knows no shared noise. Fit a walk instead.", site=site.name)
        noise = noise_of(cloak)
        kept, whole = _complete(values)
        self.times = [frame.time / 1000 for frame, good in zip(frames, whole, strict=True) if good]
        self.weights = np.where(kept, 1 / noise, 0.0)
        self.readings = np.where(kept, values[whole], 0.0) * self.weights
        tracker = site_tracker(site, cloak, seed=seed)
        if isinstance(tracker, FloorTracker):
            raise SiteError(
                f"the floor of {site.name} is too large to fit its physics to cloaked readings.", site=site.name
            )
        self.tracker = tracker
        self.sampler = self.tracker.sampler
        self.at = np.log([reach * self.model.reach, STRONG * site.spec.sources.strongest, 1.0])
        self.scores = np.zeros(3)
        self.most_free = self.free = 3 if site.drift is None else 2  # offsets that drift explain a common one
        self.information, self.variance = np.zeros((3, 3)), np.zeros((3, 3))
        self.people = 0.0
        for index, frame in enumerate(self._frames()):
            self.sampler.insert(index, frame)

    def begin(self) -> None:
        """Draw paths for the first time."""
        for _ in range(FIRST_SWEEPS):
            self.sweep()

    def state(self) -> dict[str, object]:
        """All that the next steps depend on."""
        own = {name: getattr(self, name) for name in KEPT}
        drawn = {name: getattr(self.sampler, name) for name in DRAWN}
        return {**own, **drawn, "rng": json.dumps(self.sampler.rng.bit_generator.state)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state."""
        for name in KEPT:
            setattr(self, name, state[name])
        for name in DRAWN:
            setattr(self.sampler, name, state[name])
        self.sampler.rng.bit_generator.state = json.loads(str(state["rng"]))
        self.people = float(self.people)
        self.sampler.frames[:] = self._frames()

    def _frames(self) -> list[WeighedFrame]:
        """The frames as the paths see them, with the parameters as they are now."""
        log_reach, log_strength, offset = self.at
        strength, footprint = math.exp(log_strength), self.model.plan.footprint
        plain = self.model.matrix(math.exp(log_reach), footprint)
        matrix = self.weights[:, None] * plain
        self.sampler.columns = np.ascontiguousarray(strength * plain.T, dtype=np.float32)
        sides = [
            self.weights[:, None] * self.model.matrix(math.exp(log_reach + change), footprint)
            for change in (-SLOPE, SLOPE)
        ]
        nobody = np.zeros((1, len(self.weights)))
        self.columns = np.concatenate([strength * matrix.T, nobody])
        self.slopes = np.concatenate([strength * (sides[1] - sides[0]).T / (2 * SLOPE), nobody])
        self.rest = self.readings - offset * self.weights
        columns = self.columns[:-1]
        seen = np.ascontiguousarray(self.rest @ columns.T, dtype=np.float32)
        overlap = np.asarray(columns @ columns.T, dtype=np.float32)
        squares = np.ascontiguousarray(np.diagonal(overlap))
        moves, still = self.tracker.moves, np.zeros((1, len(self.weights)))  # until offsets are drawn
        gaps = np.diff(self.times, prepend=self.times[0] - 1.0)
        return [
            WeighedFrame(
                time, self.rest[k], self.weights, still, seen[k : k + 1], squares, overlap, moves.over(float(gap))
            )
            for k, (time, gap) in enumerate(zip(self.times, gaps, strict=True))
        ]

    def sweep(self) -> None:
        """Draw the offsets that drift, and the path of each source, again."""
        self.sampler.draw_offsets()
        for slot in self.sampler.rng.permutation(self.sampler.slots).tolist():
            self.sampler.redraw(slot)
        for _ in range(EXCHANGES):
            self.sampler.exchange()

    def step(self, sweeps: int, share: float) -> None:
        """Draw paths, and move the parameters by a share of a Newton step."""
        drawn = []
        for _ in range(sweeps):
            self.sweep()
            drawn += [self._facts(chain) for chain in range(self.sampler.chains)]
        scores = np.array([facts[0] for facts in drawn])
        information = np.mean([facts[1] for facts in drawn], axis=0)
        variance = np.cov(scores.T)
        old = MEMORY if self.information.any() else 0.0
        self.scores = scores.mean(axis=0)
        self.information = old * self.information + (1 - old) * information
        self.variance = old * self.variance + (1 - old) * variance
        self.people = old * self.people + (1 - old) * float(np.mean([facts[2] for facts in drawn]))
        largest = LARGEST * np.array([1.0, 1.0, 1 / math.sqrt(self.information[2, 2] / len(self.times))])[: self.free]
        change = np.clip(self._inverse(LEAST_KNOWN) @ self.scores[: self.free], -largest, largest)
        self.at = self.at + share * np.append(change, np.zeros(3 - self.free))
        self.sampler.frames[:] = self._frames()

    def _facts(self, chain: int) -> tuple[FloatArray, FloatArray, float]:
        """Gradient and curvature of the log likelihood of the paths of one chain, and the mean number of sources."""
        states, n = self.sampler.states[chain], self.sampler.places
        cells = np.where(states < self.sampler.absent, states % n, n)
        warmth, slope = self.columns[cells].sum(axis=0), self.slopes[cells].sum(axis=0)
        changes = np.stack([slope, warmth, np.broadcast_to(self.weights, warmth.shape)])
        offsets = np.stack([frame.offsets[chain % len(frame.offsets)] for frame in self.sampler.frames])
        score = np.einsum("pts,ts->p", changes, self.rest - offsets - warmth)
        return score, np.einsum("pts,qts->pq", changes, changes), float((cells < n).sum() / len(self.times))

    def _inverse(self, least: float) -> FloatArray:
        """The inverse of the information that unknown paths leave, which is at least a share in each direction."""
        free = slice(self.free)
        root = linalg.cholesky(self.information[free, free] + NOTHING * np.eye(self.free), lower=True)
        half = linalg.solve_triangular(root, self.variance[free, free], lower=True)
        lost, turned = linalg.eigh(linalg.solve_triangular(root, half.T, lower=True))
        directions = linalg.solve_triangular(root.T, turned)
        return np.asarray(directions / np.maximum(1 - lost, least) @ directions.T)

    def result(self, ends: FloatArray) -> CloakedFit:
        """The fit, with the parameters at the mean of the ends of all searches, (searches, 3)."""
        at = ends.mean(axis=0).tolist()
        errors = [*np.sqrt(np.diag(self._inverse(1e-3))).tolist(), 0.0]  # none of an offset that is not free
        return CloakedFit(
            self.site,
            len(self.times),
            Fitted.of(at[0], errors[0], 2, back=math.exp),
            Fitted.of(at[1], errors[1], 2, back=math.exp),
            Fitted.of(at[2], errors[2], 2),
            self.people,
            tuple((float(reach), float(strength)) for reach, strength in np.exp(ends[:, :2])),
        )


def noise_of(cloak: Cloak) -> FloatArray:
    """Standard deviation of all that makes a reading inexact: noise, and the steps of the hardware and of sending."""
    hardware = 0.0 if cloak.resolution is None else cloak.resolution
    return np.asarray(np.sqrt(cloak.total_sigmas**2 + cloak.steps**2 / 6 + hardware**2 / 12))


def _complete(values: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which sensors to keep, (m,), and which frames then have all of them, (T,)."""
    missing = np.isnan(values)
    kept = np.asarray(missing.mean(axis=0) <= RARE)
    whole = np.asarray(~missing[:, kept].any(axis=1) & kept.any())
    if whole.sum() < FEWEST_FRAMES:
        raise ReadingError(
            f"{int(whole.sum())} complete frames: give at least {FEWEST_FRAMES}; a day at one a minute is enough.",
            frames=int(whole.sum()),
        )
    return kept, whole
