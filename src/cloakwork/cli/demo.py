"""`cloakwork demo`: the whole line, on a furnished flat with three people in it."""

import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import optimize

from cloakwork._checks import FloatArray
from cloakwork.cli.draw import cross, floor, save
from cloakwork.cli.output import note, say, table
from cloakwork.measure import emd
from cloakwork.physics import FloorPlan, sources
from cloakwork.recovery import Recovery, Source, recover
from cloakwork.site import parse_site

PEOPLE = {"reading on the sofa": (2.1, 2.4), "asleep": (8.6, 6.6), "at the desk": (8.4, 1.6)}
FURNITURE = {
    "sofa": (1.2, 1.5, 1.8, 0.7),
    "table": (2.6, 5.2, 1.6, 1.0),
    "kitchen": (0.1, 7.3, 4.0, 0.6),
    "bed ": (7.2, 5.9, 1.8, 1.4),
    "bed": (8.1, 2.4, 1.8, 1.4),
    "desk": (7.6, 0.7, 1.6, 0.7),
}


@dataclass(frozen=True, eq=False)
class _Result:
    """One way to recover the demo's frame, and its name in the table."""

    name: str
    found: Recovery


def run_demo(out: Path, *, seed: int) -> None:
    """Cloak, recover, print a table, draw a picture, and say what it means."""
    began = time.perf_counter()
    site = parse_site(files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8"))
    flat = site.physics
    if not isinstance(flat, FloorPlan):
        raise TypeError("the example site is a floor plan")
    note("planning the noise: each sensor gets its own ...")
    cloak = site.cloak()
    truth = sources(flat, list(PEOPLE.values()))
    clean = flat.apply(truth)
    note("cloaking and recovering (the first run compiles the solvers, which takes some seconds) ...")
    noisy = cloak.simulate(clean + site.baselines, rng=np.random.default_rng(seed)) - site.baselines
    choice = site.estimator()
    ours = _Result("posterior", recover(noisy, cloak, estimator=choice.estimator))
    papers = _Result("smallest total", recover(noisy, cloak))
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "demo.png"
    _draw(picture, flat, noisy / cloak.sigmas, papers, ours)
    _report(flat, truth, papers, ours)
    say(f"Both from the same noisy readings. The posterior is used because the site says: {choice.reason}.")
    low, high, warmth = cloak.sigmas.min(), cloak.sigmas.max(), flat.matrix.max()
    say(
        f"What it means: each of {flat.sensors} sensors added noise to its own reading before sending it, with a "
        f"standard deviation of {low:.2f} degrees for those that tell most and up to {high:.0f} for those that would "
        f"tell too much (one person warms a sensor straight above by {warmth:.2f}). Someone who sees all of them "
        f"cannot tell well whether a person moved by {cloak.alpha:g} m: any event is at most e^{cloak.epsilon:g} times "
        f"likelier either way, plus {cloak.delta:g}. They still learn roughly where people are. Presence, number of "
        "people and which side of a wall they are on are not hidden."
    )
    equal, own = cloak.design_report.equal_vicinity, cloak.design_report.vicinity
    say(
        f"At the same guarantee, the same noise for all sensors would locate a lone person to {equal:.2f} m (standard "
        f"deviation at a typical place) instead of {own:.2f} m."
    )
    say("`cloakwork init` writes these settings to a file.")
    note(
        f"drew {picture} in {time.perf_counter() - began:.1f} s; now try: cloakwork init, then cloakwork plan site.toml"
    )


def _report(flat: FloorPlan, truth: FloatArray, papers: _Result, ours: _Result) -> None:
    matched = [_matched(result.found.sources) for result in (papers, ours)]
    rows = []
    for number, (who, at) in enumerate(PEOPLE.items()):
        theirs, mine = (_cells(one.get(number), at) for one in matched)
        rows.append((who, f"{at[0]:.1f}, {at[1]:.1f}", theirs[0], *mine))
    table("Three people in a flat", ("person", "is at", papers.name, ours.name, "within"), rows)
    for result in (papers, ours):
        if result.found.map.sum() > 0:
            far = emd(result.found.map, truth, flat.space)
            say(f"{result.name}: warmth must be carried {far:.2f} m on average to turn its map into the truth.")
    counts = ours.found.counts
    likely = ", ".join(f"{k}: {100 * p:.0f} %" for k, p in enumerate(counts) if p >= 0.005)
    say(f"How many people, by the posterior: {likely}.")


def _matched(found: tuple[Source, ...]) -> dict[int, Source]:
    """For each person the recovered source that is matched to it one to one, if any."""
    apart = np.array([[_apart(source, at) for source in found] for at in PEOPLE.values()]).reshape(len(PEOPLE), -1)
    pairs = zip(*optimize.linear_sum_assignment(apart), strict=True)
    return {int(person): found[int(source)] for person, source in pairs}


def _cells(source: Source | None, at: tuple[float, float]) -> tuple[str, str]:
    """Where a person was found and how far off, and the radius of the vicinity."""
    if source is None or not isinstance(source.at, tuple):
        return "not found", ""
    return f"{source.at[0]:.1f}, {source.at[1]:.1f}: {_apart(source, at):.2f} m", f"{source.radius:.2f} m"


def _apart(source: Source, at: tuple[float, float]) -> float:
    return float(np.hypot(*(np.asarray(source.at) - np.asarray(at))))


def _draw(path: Path, flat: FloorPlan, noisy: FloatArray, papers: _Result, ours: _Result) -> None:
    """`noisy` are the readings over the noise of each sensor."""
    figure = Figure(figsize=(12, 10.4), layout="constrained")
    (first, second), (third, fourth) = figure.subplots(2, 2)
    floor(first, flat.rooms, None)
    first.set_title("The truth: three people at home")
    floor(second, flat.rooms, None)
    second.set_title("What the sensors send: warmth plus noise")
    size = float(np.abs(noisy).max())
    x, y = flat.sensor_positions.T
    dots = second.scatter(
        x, y, c=noisy, cmap="coolwarm", vmin=-size, vmax=size, s=90, edgecolors="#555555", linewidths=0.5
    )
    figure.colorbar(dots, ax=second, label="reading over its noise", shrink=0.8)
    mesh = floor(third, flat.rooms, _spread(papers.found, flat.places))
    third.set_title("Smallest total that fits (the papers' recovery)")
    figure.colorbar(mesh, ax=third, label="weight that may be here", shrink=0.8)
    mesh = floor(fourth, flat.rooms, ours.found.intensity / flat.rooms.cell**2)
    fourth.set_title("What an analyst learns: the posterior of point sources")
    figure.colorbar(mesh, ax=fourth, label="people per square metre", shrink=0.8)
    for axes, result in ((third, papers), (fourth, ours)):
        for source in result.found.sources:
            cross(axes, np.asarray(source.at).tolist())
        axes.plot([], [], "x", color="#b3261e", markeredgewidth=2, label="found; shaded: where it may be")
    for axes in (first, third, fourth):
        _furnish(axes)
        for number, at in enumerate(PEOPLE.values()):
            axes.plot(*at, "o", color="#1f5fa8", markersize=9, label="person" if number == 0 else None)
        _legend(axes)
    save(figure, path)


def _legend(axes: Any) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)


def _spread(found: Recovery, places: int) -> FloatArray:
    """For each cell the weight of the sources that could be there without the readings showing it."""
    total = np.zeros(places)
    for source in found.sources:
        total[source.vicinity] += source.weight
    return total


def _furnish(axes: Any) -> None:
    for name, (x, y, width, height) in FURNITURE.items():
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#999999", linewidth=1))
        axes.text(x + width / 2, y + height / 2, name.strip(), ha="center", va="center", fontsize=7, color="#777777")
