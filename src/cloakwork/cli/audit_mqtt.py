"""`cloakwork audit mqtt`."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing import Audit
from cloakwork.auditing.report import Subject
from cloakwork.auditing.sources import Bench, BenchClaim, BenchSource, Setup, bench_claim
from cloakwork.auditing.sources.bench import FEWEST
from cloakwork.cli.audit import Wanted, audited, finish, refuse_inputs
from cloakwork.cli.output import bar, counted, note
from cloakwork.errors import InputError
from cloakwork.site import Plan, Site, load_plan, load_site, plan_beside
from cloakwork.site.broker import parse_broker

HALF, TENTH = 0.5, 0.9
WEAK = 3.0  # standard errors beyond which they differ by less
SURE = 5.0  # standard errors beyond which the set-ups differ by more than was said
NETWORK = (
    "Anything about all sensors together. This was one reading of one sensor; what someone learns who sees many "
    "sensors, or many readings, follows from the plan only if each adds noise of its own, as it should."
)


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What an audit over a broker is told."""

    sensor: str
    broker: str
    password_file: Path | None
    ca: Path | None
    plan: Path | None
    shift: float | None
    epsilon: float | None
    between: str | None
    settle: float | None
    patience: float | None
    out: Path | None


def run_mqtt(path: Path, options: BenchOptions, *, wanted: Wanted) -> None:
    """Audit a device on the bench, over a broker."""
    site = load_site(path)
    file = options.plan or plan_beside(path)
    plan = load_plan(file)
    plan.cloak(site, file=file)  # refuses a plan of another site, or of this one before it changed
    claim = bench_claim(site, plan, options.sensor, shift=options.shift, epsilon=options.epsilon)
    if wanted.reports < FEWEST:
        raise InputError(f"--reports {wanted.reports}: an audit needs at least {FEWEST} with each set-up.")
    refuse_inputs(wanted, path, file)
    _announce(claim, plan, wanted)
    folder = options.out or path.parent / "audits" / options.sensor
    found, recordings = _record(plan, options, claim, folder, wanted)
    subject = _bench_subject(site, plan, claim, recordings)
    note(f"the recordings are {folder / 'setup-0.csv'} and {folder / 'setup-1.csv'}")
    finish(found, subject, wanted)


def _record(
    plan: Plan, options: BenchOptions, claim: BenchClaim, folder: Path, wanted: Wanted
) -> tuple[Audit, tuple[IntArray, IntArray]]:
    period = plan.schedule.period_ms / 1000
    broker = parse_broker(options.broker, password_file=options.password_file, authority=options.ca)
    patience = max(60.0, 10 * period) if options.patience is None else options.patience
    settle = 2 * period + 0.5 if options.settle is None else options.settle
    files = folder / "setup-0.csv", folder / "setup-1.csv"
    for file in files:
        if file.exists():
            raise InputError(
                f"{file} is there already: give another folder with --out. Recordings that are complete are audited "
                f"with: cloakwork audit readings {shlex.join(map(str, files))}"
            )
    folder.mkdir(parents=True, exist_ok=True)
    with Bench(broker, site=plan.site, sensor=options.sensor, patience=patience, note=note) as bench:
        with Setup(bench, files[0], settle=settle) as setup, bar("recording set-up 0", wanted.reports) as show:
            first = setup.take(wanted.reports, show)
        _change(options.between)
        with Setup(bench, files[1], settle=settle) as setup:
            note(f"recording set-up 1, and auditing it meanwhile: up to {counted(wanted.reports, 'reading')}")
            found = audited(BenchSource(first, setup), claim.epsilon, claim.delta, wanted, wanted.reports)
            return found, (first, np.array(setup.values, dtype=np.int64))


def _announce(claim: BenchClaim, plan: Plan, wanted: Wanted) -> None:
    unit = f" {claim.unit}" if claim.unit else ""
    note(
        f"set-ups that differ by at most {claim.shift:.4g}{unit} at this sensor, whose noise is "
        f"{claim.sigma:.4g}{unit}: one reading promises epsilon {claim.epsilon:.4g} at delta {claim.delta:.4g}"
    )
    half, tenth = (claim.reports_needed(scale, confidence=wanted.confidence) for scale in (HALF, TENTH))
    note(f"noise half as large as planned shows in about {_about(half)} readings, a tenth too small in {_about(tenth)}")
    if half > wanted.reports:
        note(
            f"{wanted.reports:,} are hardly enough: feed it readings further apart, such as by "
            f"{claim.strong_shift:.3g}{unit} with --shift {claim.strong_shift:.3g}"
        )
    minutes = max(1.0, 2 * wanted.reports * plan.schedule.period_ms / 60_000)
    note(f"a reading every {plan.schedule.period_ms / 1000:g} s: about {minutes:,.0f} min in all, or less")


def _about(number: float) -> str:
    return f"{number:.2g}" if number >= 1e7 else f"{int(float(f'{number:.1e}')):,}"


def _change(between: str | None) -> None:
    """Have the set-up of sources changed, by a program or by the person who watches."""
    if between is None:
        note("set-up 0 is recorded. Change to set-up 1 now, then press Enter")
        try:
            input()
        except EOFError:
            raise InputError("nobody is there to change the set-up: give a program that does with --between.") from None
        return
    try:
        done = subprocess.run(shlex.split(between), check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - named by whoever audits
    except (OSError, ValueError) as problem:
        raise InputError(f"--between {between}: {getattr(problem, 'strerror', None) or problem}.") from None
    if done.returncode:
        raise InputError(f"--between {between}: it ended with exit code {done.returncode}.")


def _bench_subject(site: Site, plan: Plan, claim: BenchClaim, recordings: tuple[IntArray, IntArray]) -> Subject:
    unit = f" {claim.unit}" if claim.unit else ""
    times = claim.shift / claim.hidden_shift if claim.hidden_shift > 0 else 0.0
    hidden = (
        f"A move of {plan.claim.alpha:g}, which the site hides, shifts this sensor by at most "
        f"{claim.hidden_shift:.4g}{unit}"
        + (
            f"; what was tested is {times:.3g} times that."
            if claim.shift != claim.hidden_shift
            else ", which was tested."
        )
    )
    return Subject(
        name=f"The sensor {claim.sensor} of {site.name}",
        inputs=("set-up 0", "set-up 1"),
        claim=(
            f"By the plan {plan.digest[:12]} this sensor adds normal noise with a standard deviation of "
            f"{claim.sigma:.4g}{unit}. So a single reading of it has at most this epsilon and delta for set-ups whose "
            f"true readings differ by at most {claim.shift:.4g}{unit}, with a step of {claim.step:.4g}{unit} for "
            "rounding.",
            hidden,
        ),
        notes=(
            f"Readings are whole steps of {claim.step:.6g}{unit}.",
            *moved(claim, recordings),
        ),
        limits=(
            NETWORK,
            "Its budget: a device for audits has none, so how many readings it takes at work was not tested.",
        ),
    )


def moved(claim: BenchClaim, recordings: tuple[IntArray, IntArray]) -> tuple[str, ...]:
    """What the recordings themselves show of shift and noise, for whoever looks for the cause."""
    first, second = (values.astype(np.float64) * claim.step for values in recordings)
    if min(len(first), len(second)) < 2:
        return ()
    unit = f" {claim.unit}" if claim.unit else ""
    apart = abs(float(first.mean() - second.mean()))
    error = float(np.sqrt(first.var() / len(first) + second.var() / len(second)))
    spread = float(np.sqrt((first.var() + second.var()) / 2))
    said = [
        f"The readings of the two set-ups differ by {apart:.3g} ± {error:.2g}{unit} on average, and scatter by "
        f"{spread:.3g}{unit}; planned are at most {claim.shift + claim.step:.3g}{unit}, and {claim.sigma:.3g}{unit}."
    ]
    if apart - SURE * error > claim.shift + claim.step:
        said.append(
            "So the set-ups differ by more than was stated, or the device makes them differ: a violation may come "
            "from that, and not from missing noise. Check the set-ups, or state the shift with --shift."
        )
    if apart + WEAK * error < claim.shift - claim.step:
        said.append(
            "That is less than was stated, so this audit tested less than it says: the set-ups were nearer to each "
            "other, or readings that failed or came too late were replaced by the baseline."
        )
    return tuple(said)
