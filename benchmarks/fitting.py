"""Physics from cloaked readings: one day of three people in the example flat, reach and strength stated 30 % off."""

import sys
import time
from importlib.resources import files

import numpy as np
from rich.table import Table

from cloakwork.accuracy import simulated_day
from cloakwork.fitting import fit_cloaked
from cloakwork.readings import Frame
from cloakwork.site import parse_site

FRAMES = 1440
WITHIN = 0.05
CASES = ((1, 1.3, 0.7), (2, 0.7, 1.3), (3, 0.7, 0.7), (4, 1.3, 1.3))  # seed, stated over true reach, strength


def run() -> tuple[Table, bool]:
    """Fit each day; met if reach and strength come within 5 % of the truth."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    truth = parse_site(text)
    reach, strength = 2.0, truth.spec.sources.strongest
    table = Table("day", "stated", "reach (true: 2)", "strength (true: 5)", "people (true)", "CPU", title="calibrate")
    met = True
    for seed, far, strong in CASES:
        stated = text.replace("reach = 2.0 ", f"reach = {far * reach:g} ")
        site = parse_site(stated.replace("strength = 5.0 ", f"strength = {strong * strength:g} "))
        cloak = site.cloak()
        day = simulated_day(truth.physics.space, 3, seed=seed, entrances=truth.motion.entrances)
        places = day.places_at(60.0 * np.arange(FRAMES))
        columns = np.concatenate([truth.physics.matrix.T, np.zeros((1, truth.physics.sensors))])
        readings = columns[places].sum(axis=1) + truth.baselines
        steps = cloak.to_steps(cloak.simulate(readings, rng=np.random.default_rng(seed)))
        frames = [Frame(60_000 * k, steps[k], np.ones(truth.physics.sensors, dtype=bool)) for k in range(FRAMES)]
        began = time.process_time()
        fit = fit_cloaked(site, cloak, frames, seed=seed)
        met &= abs(fit.reach.value / reach - 1) < WITHIN and abs(fit.strength.value / strength - 1) < WITHIN
        people = f"{fit.people:.2f} ({(places >= 0).sum() / FRAMES:.2f})"
        row = (f"{far:g}, {strong:g}", str(fit.reach), str(fit.strength), people)
        table.add_row(str(seed), *row, f"{time.process_time() - began:.0f} s")
        print(row, file=sys.stderr, flush=True)
    return table, met
