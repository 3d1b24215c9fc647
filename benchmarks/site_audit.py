"""Frames until a fault of a whole site shows: the audit of the site, and the betting audit of its frames.

The site is that of `cloakwork init` without its table for stays, with made-up sources. The betting audit compares two
of its maps: those that tell most of the difference of the two sensors with one keystream, as far apart as the site's
audit takes them. It needs a frame of each. A single sensor is audited in the same way; its reports look the same with a
shared keystream.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from benchmarks.default_flat import Case
from cloakwork._checks import FloatArray
from cloakwork.auditing import Verdict, audit, audit_site
from cloakwork.privacy import Cloak, Profile

NIGHT, CONFIDENCE = 480, 0.99  # frames at one a minute
NIGHTS, HONEST_NIGHTS, HONEST_CONFIDENCE, BETS = 8, 20, 0.9, 3
MOST = 4_000  # reports of the betting audit on each of two maps
APART = 2.0  # standard deviations between the two maps
SHARED = (5, 41)


@dataclass(frozen=True)
class Fault:
    """What is wrong with the noise of all devices, in steps (frames, sensors)."""

    name: str
    apply: Callable[[FloatArray], FloatArray]


def _shared(noise: FloatArray) -> FloatArray:
    copied = noise.copy()
    copied[..., SHARED[1]] = noise[..., SHARED[0]]
    return copied


FAULTS = (
    Fault("all noise halved", lambda noise: np.rint(noise / 2)),
    Fault(f"sensors {SHARED[0]} and {SHARED[1]} have one key", _shared),
    Fault("none", lambda noise: noise),
)


def run() -> tuple[Table, bool]:
    """The table, and whether all faults are found in a night and honest sites are accused as rarely as stated."""
    table = Table(title=f"Frames until a fault is found, at {100 * CONFIDENCE:g} %")
    for name in ("fault", "site audit", "found", "betting audit, whole frames", "found", "one sensor", "found", ""):
        table.add_column(name, justify="left" if name == "fault" else "right")
    cloak, met = Case(stay=False).site().cloak(), True
    for fault in FAULTS[:2]:
        nights = [_night(cloak, fault, seed, CONFIDENCE) for seed in range(NIGHTS)]
        columns = [_words(nights)]
        columns += [
            _words([_betting(cloak, fault, seed, sensor) for seed in range(BETS)]) for sensor in (None, SHARED[1])
        ]
        good = all(nights)
        met &= good
        table.add_row(fault.name, *(word for words in columns for word in words), "met" if good else "MISSED")
    honest = [_night(cloak, FAULTS[2], 100 + seed, HONEST_CONFIDENCE) for seed in range(HONEST_NIGHTS)]
    bets = [[_betting(cloak, FAULTS[2], seed, sensor) for seed in range(BETS)] for sensor in (None, SHARED[1])]
    alarms, allowed = sum(map(bool, honest)), (1 - HONEST_CONFIDENCE) * HONEST_NIGHTS
    met &= alarms <= allowed
    stated = f"{alarms} of {HONEST_NIGHTS} at {100 * HONEST_CONFIDENCE:g} %, goal {allowed:.0f}"
    ends = (word for one in bets for word in ("-", f"{sum(map(bool, one))} of {BETS}"))
    table.add_row("none: false alarms", "-", stated, *ends, "met" if alarms <= allowed else "MISSED")
    return table, met


def _words(frames: list[int]) -> tuple[str, str]:
    found = sorted(number for number in frames if number)
    span = f"{np.median(found):,.0f} ({found[0]:,} to {found[-1]:,})" if found else "-"
    return span, f"{len(found)} of {len(frames)}"


def _published(cloak: Cloak, fault: Fault, readings: FloatArray, rng: np.random.Generator) -> FloatArray:
    true = np.rint(readings / cloak.steps)
    noise = cloak.to_steps(cloak.simulate(true * cloak.steps, rng=rng)) - true
    return np.asarray((true + fault.apply(noise.astype(np.float64))) * cloak.steps)


def _night(cloak: Cloak, fault: Fault, seed: int, confidence: float) -> int:
    """Frames until the site's audit found a violation; 0 if it did not in a night."""
    rng = np.random.default_rng(seed)
    found = audit_site(
        cloak,
        lambda readings: _published(cloak, fault, readings, rng),
        max_frames=NIGHT,
        confidence=confidence,
        rng=rng,
    )
    return found.frames if found.verdict is Verdict.VIOLATION else 0


def _betting(cloak: Cloak, fault: Fault, seed: int, sensor: int | None) -> int:
    """Frames until the betting audit found a violation; 0 if it did not."""
    seen = slice(None) if sensor is None else slice(sensor, sensor + 1)
    maps = _two_maps(cloak, seed, seen) * cloak.sigmas

    def reports(database: int, size: int, rng: np.random.Generator) -> FloatArray:
        readings = np.broadcast_to(maps[database], (size, len(cloak.sigmas)))
        published = _published(cloak, fault, readings, rng)[:, seen]
        return published if sensor is None else published[:, 0]

    rounding = float(np.linalg.norm((cloak.steps / cloak.sigmas)[seen]))
    delta = Profile(APART + rounding).delta(1.0)
    rng = np.random.default_rng(seed)
    found = audit(reports, epsilon=1.0, delta=delta, reports=MOST, confidence=CONFIDENCE, rng=rng)
    return 2 * found.reports_used if found.verdict is Verdict.VIOLATION else 0


def _two_maps(cloak: Cloak, seed: int, seen: slice) -> FloatArray:
    """Readings of one source at two places, in standard deviations; these sensors see them `APART` apart."""
    rng, space = np.random.default_rng([seed, 1]), cloak.physics.space
    units = np.eye(len(space))[rng.permutation(len(space))[:128]]
    columns = np.asarray(cloak.physics.apply(units)) / cloak.sigmas
    pairs = rng.integers(len(columns), size=(512, 2))
    shifts = columns[pairs[:, 0]] - columns[pairs[:, 1]]
    sizes = np.linalg.norm(shifts[:, seen], axis=1)
    share = np.abs(shifts[:, SHARED[0]] - shifts[:, SHARED[1]]) / np.maximum(sizes, 1e-9 * sizes.max())
    best = int(np.argmax(np.where(sizes > 0.1 * sizes.max(), share, 0.0)))
    return np.asarray(columns[pairs[best]] * APART / sizes[best])
