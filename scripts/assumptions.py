"""Writes docs/tables/assumptions.txt, for the page on security: `python -m scripts.assumptions`.

For the flat of `cloakwork init` in an ideal world, each row makes one assumption of the claim wrong by a
factor of two, keeps the planned noise, and computes the (epsilon, delta) that a window then has.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cloakwork.physics import Family, Timing
from cloakwork.privacy import Cloak, Profile
from cloakwork.privacy.noise_floor import NoiseFloor
from cloakwork.site import Site, parse_site
from scripts.plain_flat import plain_flat_text

FILE = Path(__file__).parent.parent / "docs" / "tables" / "assumptions.txt"
STEP, NOISE_FLOOR = 0.0625, 0.04  # degrees, of a usual thermometer


class Assumption(NamedTuple):
    """An assumption: its name, the stated value, the true value, and the resulting mu of a window; None: infinite."""

    name: str
    stated: str
    true: str
    mu: float | None


def example_site() -> Site:
    """The plain flat, with equal noise."""
    return parse_site(plain_flat_text().replace('design = "least-error"', 'design = "equal"'))


def stepped(site: Site, **hardware: float) -> Cloak:
    """A cloak whose plan knows the step of the hardware."""
    privacy = site.spec.privacy.model_copy(update={"resolution": STEP, **hardware})
    return Site(site.spec.model_copy(update={"privacy": privacy}), site.folder).cloak()


def rough_step(site: Site) -> float:
    """The mu of a window whose plan knows a step of the hardware, but half of the true one."""
    cloak = stepped(site)
    frame = cloak.allowance.cost(cloak.sigmas, cloak.steps + 2 * STEP)
    return Profile(frame).compose(cloak.readings_per_window).mu


def quiet_sensors(cloak: Cloak, factor: float) -> float:
    """The mu of a window whose plan rests on a noise floor, where the sensors have this part of it."""
    true = NoiseFloor(np.full_like(cloak.sigmas, factor * NOISE_FLOOR), np.full_like(cloak.sigmas, STEP))
    plan = cloak.allowance
    frame = replace(plan, hardware=plan.hardware._replace(floor=true)).frame_mu(cloak.sigmas)
    return Profile(frame).compose(cloak.readings_per_window).mu


def assumptions(site: Site, cloak: Cloak) -> Iterator[Assumption]:
    """Each assumption of the site's claim, wrong by a factor of two."""
    family, plan = cloak.family, cloak.allowance
    late, clock, speed = site.schedule.late_ms / 1000, site.schedule.clock_ms / 1000, float(family.timing.speed)

    def window(*, family: Family = family, alpha: float = cloak.alpha) -> float:
        """The mu of a window with the planned noise, where some of the plan is wrong."""
        frame = replace(plan, family=family, claim=replace(plan.claim, alpha=alpha)).cost(cloak.sigmas, cloak.steps)
        return Profile(frame).compose(cloak.readings_per_window).mu

    def moved(spread: float, fastest: float) -> float:
        return window(family=replace(family, timing=Timing(spread, fastest)))

    planned, spread = window(), 2 * clock + late
    more = partial(Profile(planned).compose, 2)
    yield Assumption("none is wrong", "", "", planned)
    yield Assumption("clock", f"within {clock:g} s", f"within {2 * clock:g} s", moved(spread + 2 * clock, speed))
    yield Assumption("lateness", f"at most {late:g} s", f"up to {2 * late:g} s", moved(spread + late, speed))
    yield Assumption("speed of sources", f"at most {speed:g} m/s", f"up to {2 * speed:g} m/s", moved(spread, 2 * speed))
    yield Assumption("step of the hardware", f"{STEP:g}", f"{2 * STEP:g}", rough_step(site))
    yield Assumption("the sensor's noise floor", "not stated", "twice or half as large", planned)
    noisy = stepped(site, noise_floor=NOISE_FLOOR)
    for factor in (0.5, 0.0):
        true = f"{factor * NOISE_FLOOR:g}"
        yield Assumption("the sensor's noise floor", f"at least {NOISE_FLOOR:g}", true, quiet_sensors(noisy, factor))
    for name, factor in (("half", 0.5), ("twice", 2.0)):
        wrong = window(family=replace(family, physics=site.physics.with_spread(factor)))
        yield Assumption("model: diffusion", "as stated, no tolerance", f"{name} as much", wrong)
    strong = replace(family, tolerance=replace(family.tolerance, gain=1.0))
    yield Assumption("model: gain, strength of a source", "1 in units of the strength", "2", window(family=strong))
    remembering = replace(family, tolerance=replace(family.tolerance, memory=True))
    lingering = "warmth lingers, for any time"
    yield Assumption("model: memory", "readings follow sources at once", lingering, window(family=remembering))
    yield Assumption("move", f"up to {cloak.alpha:g} m", f"{2 * cloak.alpha:g} m", window(alpha=2 * cloak.alpha))
    yield Assumption("baseline", f"{site.baselines[0]:g}", "any other", planned)
    count = cloak.readings_per_window
    yield Assumption("budget", f"{count} readings in a window", f"{2 * count}, or someone keeps two windows", more().mu)
    yield Assumption("randomness: size of the noise", "as planned", "half of it", 2 * planned)
    yield Assumption("randomness: fresh noise", "used once", "used for two readings", None)
    yield Assumption("keys", "nobody else has them", "one other person has them", None)


def table(site: Site) -> list[str]:
    """The lines of the table, in Markdown."""
    cloak = site.cloak()
    epsilon, delta = cloak.epsilon, cloak.delta
    lines = [
        f"| assumption | stated | true instead | delta at epsilon {epsilon:g} | epsilon at delta {delta:g} |",
        "|---|---|---|---:|---:|",
    ]
    for name, stated, true, mu in assumptions(site, cloak):
        reached = (
            ("1", "none") if mu is None else (f"{Profile(mu).delta(epsilon):.1e}", f"{Profile(mu).epsilon(delta):.2f}")
        )
        lines.append(f"| {' | '.join((name, stated, true, *reached))} |")
    return lines


if __name__ == "__main__":
    FILE.write_text("\n".join([*table(example_site()), ""]), encoding="utf-8")
