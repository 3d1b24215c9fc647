"""What an attacker who keeps the readings of a longer time can compute from them."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import make_result
from cloakwork.collect.storage import Reading, Result, unix_ms
from cloakwork.errors import InputError
from cloakwork.readings import partial_cloak, recovered_frames
from cloakwork.recovery import recover


@dataclass(frozen=True)
class Attack:
    """The combined readings of a window, which reveal more about sources that did not move.

    `since` is the time of the first frame; the result has the time of the last. `cut` says that the window has more
    readings than were used: then the last ones were.
    """

    result: Result
    frames: int
    readings: int
    since: int
    cut: bool = False


def attack(site: CollectedSite, readings: Iterable[Reading], *, clock: Callable[[], int] = unix_ms) -> Attack:
    """Combine all these readings, assuming that no source moved; takes up to some seconds.

    Notes
    -----
    The mean of k readings of a sensor has noise sigma / sqrt(k), and its rounding error shrinks alike: one frame with
    that noise holds all that k frames reveal about sources that do not move.
    """
    began = time.perf_counter()
    sums, numbers, times = [0] * len(site.ids), np.zeros(len(site.ids), np.int64), set()
    for reading in readings:
        row = site.index.get(reading.sensor)
        if row is not None and reading.time > 0:
            sums[row] += reading.value
            numbers[row] += 1
            times.add(reading.time)
    present = numbers > 0
    if not times:
        raise InputError(f"{site.name}: there is no reading in this window. Choose a later time.", site=site.name)
    part = partial_cloak(site.cloak, present)
    shrink = 1 / np.sqrt(numbers[present])
    means = np.array([total / number for total, number in zip(sums, numbers.tolist(), strict=True) if number])
    values = means * part.steps - site.baselines[present]
    combined = replace(part, sigmas=part.sigmas * shrink, roundings=part.roundings * shrink)
    recovery = recover(values[None, :], combined, estimator=site.estimator.estimator)
    [found] = recovered_frames(recovery, [max(times)], present)
    result = make_result(site, found, clock(), 1000 * (time.perf_counter() - began))
    return Attack(result, len(times), int(numbers.sum()), min(times))
