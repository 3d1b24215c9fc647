"""Long readings in stretches of time, each recovered alone: on any number of machines, with the same result."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from cloakwork.parallel import WorkPart, versions
from cloakwork.privacy import Cloak
from cloakwork.readings.frame import Frame, Problems
from cloakwork.readings.frame_recovery import FrameRecoverer, FrameRecovery, settled_frames
from cloakwork.readings.table_writer import arrow_table
from cloakwork.recovery import EXISTS
from cloakwork.site import Site

BURN_IN = 120  # frames before a stretch from which a tracker learns who is there
LAG = 10  # frames after a moment that it is judged from
HOURS = (1, 3, 6, 12, 24)
_FULL = 1000  # frames in a stretch, if a day has so many
_HOUR = 3_600_000  # milliseconds


class FrameSource(Protocol):
    """Where frames come from: a file, several, or a store."""

    def __iter__(self) -> Iterator[Frame]: ...

    @property
    def share(self) -> float:
        """How far the iteration has come, from 0 to 1."""

    @property
    def rows(self) -> int:
        """Readings so far, good or bad."""

    @property
    def problems(self) -> Problems:
        """Readings that were left out."""


@dataclass(eq=False)
class Stretch:
    """The frames of a stretch of time, with those before it that a tracker starts from and those after it."""

    number: int
    length: int
    before: list[Frame]
    frames: list[Frame] = field(default_factory=list)
    after: list[Frame] = field(default_factory=list)

    @property
    def start(self) -> int:
        """The time at which it begins, in Unix milliseconds."""
        return self.number * self.length

    @property
    def digest(self) -> str:
        """SHA-256 of everything in it."""
        digest = sha256(f"{self.number} {self.length} {len(self.before)} {len(self.frames)}".encode())
        for frame in (*self.before, *self.frames, *self.after):
            digest.update(frame.time.to_bytes(8, "big") + frame.steps.tobytes() + frame.present.tobytes())
        return digest.hexdigest()


def stretch_length(site: Site) -> int:
    """Milliseconds of a site's stretches: the shortest of 1, 3, 6, 12 and 24 hours that has 1,000 frames, or a day."""
    privacy = site.spec.privacy
    frames_per_hour = 3600 * privacy.readings_per_window / privacy.window
    return _HOUR * next((hours for hours in HOURS if hours * frames_per_hour >= _FULL), HOURS[-1])


def stretches(frames: Iterable[Frame], length: int, *, before: int, after: int) -> Iterator[Stretch]:
    """Cut frames, in order of time, into stretches that start at multiples of `length` milliseconds.

    Each has up to `before` frames that precede it and `after` frames that follow it. Stretches without a frame are
    skipped, and only a few stretches are in memory.
    """
    recent: deque[Frame] = deque(maxlen=before)
    waiting: list[Stretch] = []
    for frame in frames:
        number = frame.time // length
        if not waiting or waiting[-1].number != number:
            waiting.append(Stretch(number, length, list(recent)))
        for stretch in waiting[:-1]:
            stretch.after.append(frame)
        waiting[-1].frames.append(frame)
        recent.append(frame)
        while len(waiting) > 1 and len(waiting[0].after) >= after:
            stretch = waiting.pop(0)
            del stretch.after[after:]
            yield stretch
    yield from waiting


def stretch_parts(source: FrameSource, site: Site, cloak: Cloak, *, alone: bool) -> Iterator[WorkPart]:
    """Return the recovery of each stretch of some frames as a part of long work, for `recover_part`."""
    # what a result depends on besides the readings; the physics follow from the site's files
    settings = sha256(repr((versions(), site.digest, site.spec.model_dump_json(), alone, BURN_IN, LAG)).encode())
    slow = [] if cloak.offsets is None else [cloak.offsets.factor]
    for values in (cloak.total_sigmas, cloak.steps, cloak.roundings, *slow):
        settings.update(values.tobytes())
    before, after = (0, 0) if alone or not site.follows else (BURN_IN, LAG)
    for stretch in stretches(source, stretch_length(site), before=before, after=after):
        name = f"{site.name}-{datetime.fromtimestamp(stretch.start / 1000, UTC):%Y%m%dT%H%M}"
        yield WorkPart(name, (stretch, site, cloak, alone), f"{settings.hexdigest()} {stretch.digest}", source.share)


def recover_part(part: tuple[Stretch, Site, Cloak, bool]) -> Any:
    """Recover the frames of a stretch as an Arrow table; it depends on nothing else, on any machine.

    Follows sources through the stretch and the frames around it, with random numbers of its own. Where each frame is to
    be recovered alone, or sources are not followed, uses the frame's own readings.
    """
    stretch, site, cloak, alone = part
    if alone or not site.follows:
        found = FrameRecoverer(site, cloak).recover(stretch.frames)
    else:
        around = [*stretch.before, *stretch.frames, *stretch.after]
        first, last = stretch.frames[0].time, stretch.frames[-1].time
        final = settled_frames(around, site, cloak, lag=LAG, seed=stretch.number)
        found = sorted((one for one in final if first <= one.time <= last), key=lambda one: one.time)
    columns = {"stretch": datetime} | recovered_columns(site)
    rows = [(stretch.start, *row) for frame in found for row in recovered_rows(frame, site)]
    return arrow_table(columns, rows)


def recovered_columns(site: Site) -> dict[str, type]:
    """Names and types of the columns of `recovered_rows`; those of `datetime` hold Unix milliseconds."""
    axes = dict.fromkeys(["x", "y"][: site.physics.space.places.shape[1]], float)
    ends = {"weight": float, "radius": float, "probability": float, "same": float, "settled": int}
    ends |= {"status": str, "gap": float, "fit": float, "set_aside": str}
    return {"time": datetime, "sensors": int, "label": int, "place": int if axes else str, **axes, **ends}


def recovered_rows(found: FrameRecovery, site: Site) -> Iterator[Sequence[Any]]:
    """Rows of a recovered frame: one for each source, or one with weight 0 if there is none.

    A source of a frame recovered alone must be more likely than not.
    """
    space = site.physics.space
    axes = min(space.places.shape[1], 2)
    same = {track.label: track.identity_probability for track in found.tracks}
    aside = " ".join(site.sensor_ids[sensor] for sensor in found.fit.set_aside)
    end = (int(found.settled), found.status.name.lower(), found.gap, found.fit.p_value, aside)
    none = True
    for label, source in zip(found.labels, found.sources, strict=True):
        if found.tracked is None and source.probability < EXISTS:
            continue
        none = False
        at = [float(value) for value in np.atleast_1d(np.asarray(source.at))] if axes else []
        name = source.place if axes else space.name(source.place)
        own = (source.weight, source.radius, source.probability)
        yield (found.time, found.sensors, label, name, *at, *own, same.get(label or 0), *end)
    if none:
        yield (found.time, found.sensors, None, None, *(None for _ in range(axes)), 0.0, None, None, None, *end)
