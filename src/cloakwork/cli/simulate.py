"""`cloakwork simulate`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.arguments import TABLES, PlanFile, PlannedSite, option, writes
from cloakwork.cli.files import form_of, written
from cloakwork.cli.output import counted, note, working
from cloakwork.cli.planned_noise import planned_noise
from cloakwork.errors import InputError
from cloakwork.physics import Space, sources
from cloakwork.privacy import Cloak, OffsetWalk, simulated_words
from cloakwork.readings import READING_COLUMNS, ReadingScale, table_writer
from cloakwork.site import Site, load_site

BATCH = 1000


def simulate(
    site_file: PlannedSite,
    out: Annotated[
        Path,
        option("File of readings to write: .csv, .jsonl, .parquet or .arrow.", "--out", callback=writes(*TABLES)),
    ],
    source: Annotated[
        list[str] | None, option("A source: 0.24, 3.5,2 or a node; repeat for more.", "--source", metavar="AT[:WEIGHT]")
    ] = None,
    plan: PlanFile = None,
    frames: Annotated[int, option("Number of frames.", min=1)] = 1,
    seed: Annotated[int | None, option("Make the noise reproducible.", min=0)] = None,
) -> None:
    """Write simulated readings."""
    site = load_site(site_file)
    weights = _weights(site, source or [])
    noise = planned_noise(site, site_file, plan)
    cloak, seq = noise.cloak, 0
    steps, sigmas = (dict(zip(site.sensor_ids, each.tolist(), strict=True)) for each in (cloak.steps, cloak.sigmas))
    scale = ReadingScale(noise.id, site.unit, steps, sigmas)
    with (
        working("simulating", frames) as progress,
        written(out) as file,
        table_writer(file, form_of(out), READING_COLUMNS, {"site": site.name, "simulated": True}) as write,
    ):
        for batch in _frames(site, cloak, weights, frames, np.random.default_rng(seed)):
            for row in batch.tolist():
                time, pairs = seq * site.period_ms, zip(site.sensor_ids, row, strict=True)
                write([scale.row(time, sensor, seq, value) for sensor, value in pairs])
                seq += 1
            progress(seq)
    note(f"wrote {counted(frames * len(site.sensor_ids), 'reading')} of {counted(frames, 'frame')} to {out}")
    if frames > cloak.readings_per_window:
        windows = -(-frames // cloak.readings_per_window)
        epsilon = cloak.profile.compose(windows).epsilon(cloak.delta)
        note(f"{counted(frames, 'frame')} of a device have a total epsilon of {epsilon:.3g} at delta {cloak.delta:g}")


def _frames(site: Site, cloak: Cloak, weights: FloatArray, frames: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Noisy readings of sources that do not move, in steps."""
    clean = site.physics.apply(weights) + site.baselines
    walk = None if cloak.slow is None else OffsetWalk(cloak.slow, simulated_words(rng))
    for start in range(0, frames, BATCH):
        yield cloak.to_steps(cloak.simulate(np.tile(clean, (min(BATCH, frames - start), 1)), rng=rng, walk=walk))


def _weights(site: Site, texts: list[str]) -> FloatArray:
    """The weight of each place."""
    placed = []
    for text in texts:
        at, weight = parse_source(text, site.physics.space)
        try:
            site.physics.space.index(at)
        except InputError as problem:
            words = str(problem).removeprefix(f"at={at!r}")
            raise InputError(
                f"--source {text}{words if words[0] in ': ' else f': {words}'}", **problem.values
            ) from None
        placed.append((at, weight))
    return sources(site.physics, [at for at, _ in placed], [weight for _, weight in placed])


def parse_source(text: str, space: Space) -> tuple[object, float]:
    """Parse AT or AT:WEIGHT into a position and a weight."""
    at, _, weight = text.rpartition(":") if ":" in text else (text, "", "1")
    try:
        strength = float(weight)
    except ValueError:
        raise InputError(f"--source {text}: the weight {weight!r} is not a number. Give AT or AT:WEIGHT.") from None
    if not 0 <= strength < float("inf"):
        raise InputError(f"--source {text}: give a finite weight of 0 or above.")
    if space.labels is not None:
        return at, strength
    try:
        numbers = [float(part) for part in at.split(",")]
    except ValueError:
        raise InputError(f"--source {text}: {at!r} is not a position. Give a number, or x,y.") from None
    if space.places.shape[1] == 0:
        if not at.strip().isdecimal():
            raise InputError(f"--source {text}: {at!r} is not a place. Give a whole number from 0 to {len(space) - 1}.")
        return int(at), strength
    return (numbers[0] if len(numbers) == 1 else tuple(numbers)), strength
