"""`cloakwork learn`: which schedule suits the people, learned from private counts, and play it live."""

import math
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated

import numpy as np
import typer

from cloakwork.cli.arguments import Authority, Json, PasswordFile, no_password
from cloakwork.cli.output import as_json, bar, busy, counted, note, note_secretly, say, table
from cloakwork.cli.time_arguments import parse_moment, parse_span, shown
from cloakwork.errors import InputError
from cloakwork.mqtt import Connection, MqttClient, parse_broker
from cloakwork.series import (
    Bins,
    CountedSeries,
    Learner,
    Play,
    Schedules,
    count_events,
    read_counts,
    read_schedules,
)

_STORE_STEP = 0.05  # means of a store are learned in steps of this many people
_SURE = 1.96
_PATIENCE = 5.0  # seconds to send the last level


def learn(
    schedules: Annotated[Path, typer.Argument(metavar="SCHEDULES", help="TOML file of schedules and their costs.")],
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Events or counts with a column time; with --from-store a site file."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy loss of all that is learned; smaller hides more.")] = 1.0,
    delta: Annotated[float, typer.Option(help="About the probability that the claim fails.")] = 1e-6,
    every: Annotated[str, typer.Option(metavar="SPAN", help="Length of a round: 15m, 1h.")] = "1h",
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Start of the first round in FILE; public.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End of the last round in FILE; public.")
    ] = None,
    counts: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="FILE has one row for each round: whole numbers.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Person of each event: hides everything one person did.")
    ] = None,
    most_per_person: Annotated[
        int | None, typer.Option(metavar="K", help="Visits of one person that count in all.")
    ] = None,
    from_store: Annotated[
        str | None,
        typer.Option(metavar="URL", callback=no_password, help="Learn from a zone in a collector's store instead."),
    ] = None,
    zone: Annotated[str | None, typer.Option(metavar="NAME", help="Of a store: the zone.")] = None,
    kept: Annotated[Path | None, typer.Option(help="Of a store: file with which it goes on when interrupted.")] = None,
    live: Annotated[
        int | None,
        typer.Option(
            metavar="ROUNDS", min=1, help="Play live: read the count of each round, or labels, from standard input."
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="With --live: file that keeps what was learned when the program ends.")
    ] = None,
    broker: Annotated[str | None, typer.Option(help="With --live: publish each level to this MQTT broker.")] = None,
    topic: Annotated[str, typer.Option(help="Topic of the level, retained.")] = "cloakwork/level",
    password_file: PasswordFile = None,
    ca: Authority = None,
    json: Json = False,
) -> None:
    """Find the schedule that suits the people best without revealing any single visit, and play it live.

    For example: cloakwork learn schedules.toml visits.csv --from 2026-10-01 --to 2026-11-01
    """
    for wrong, text in (
        (source is None and live is None, "give a FILE to learn from, --live to play, or both."),
        (live is None and (state or broker), "--state, --broker: these go with --live."),
        (live and json, "--json: this does not go with --live, which prints a line for each round."),
        (kept and not from_store, "--kept: this goes with --from-store."),
        (live and from_store, "--live takes whole counts, and --from-store gives means: run the two apart."),
        (live and source and most_per_person, "--most-per-person limits a FILE or --live, not both: run them apart."),
    ):
        if wrong:
            raise InputError(text)
    plan, span = read_schedules(schedules), parse_span("--every", every)
    past, steps, contribution, contexts = None, 1.0, most_per_person or 1, np.zeros(0, dtype=np.int64)
    if source is not None:
        if start is None or end is None:
            raise InputError("--from, --to: give the period. It is public, so it is never taken from the data.")
        bins = Bins.between(parse_moment("--from", start), parse_moment("--to", end), every=span)
        past = _count(source, bins, counts, person, most_per_person, from_store, zone, kept, plan)
        note_secretly(past.remarks)
        contexts = plan.contexts(bins.times)
        if from_store is not None:  # rounding may add a step in each round that a visit touches
            steps = _STORE_STEP
            contribution = math.ceil(past.series.contribution / steps - 1e-9) + (past.series.touched or 0)
    with ExitStack() as stack:
        learner = Learner(
            plan.experts(steps),
            len(contexts) + (live or 0),
            epsilon=epsilon,
            delta=delta,
            contribution=contribution,
            persons=source is None and most_per_person is not None,
            state=state,
        )
        stack.callback(learner.close)
        if past is not None and learner.time == 0:
            with busy("learning"):
                learner.learn_past(np.rint(past.series.values[0] / steps).astype(np.int64), contexts)
        elif learner.time:
            note(f"continuing after {counted(learner.time, 'round')}, of which {learner.lost} did not count.")
        _report(learner, past, json=json)
        if live is not None:
            send = stack.enter_context(_sender(broker, topic, password_file, ca)) if broker else None
            _play(learner, plan, span, send, kept=state is not None)


def _count(
    source: Path,
    bins: Bins,
    counts: str | None,
    person: str | None,
    most_per_person: int | None,
    from_store: str | None,
    zone: str | None,
    kept: Path | None,
    plan: Schedules,
) -> CountedSeries:
    """Count the visits of each past round, with the bound on what one visit or person adds."""
    with bar("reading", bins.end - bins.start if from_store else source.stat().st_size) as progress:
        if from_store is not None:
            from cloakwork.cli.series_store import count_store  # noqa: PLC0415 - a file needs no database

            zones = () if zone is None else (zone,)
            return count_store(
                from_store,
                source,
                bins,
                zones=zones,
                count=None,
                most=plan.most,
                visit=bins.every,
                kept=kept,
                progress=progress,
            )
        if counts is not None:
            most = most_per_person or 1
            return read_counts(source, counts, bins, contribution=most, progress=progress)
        return count_events(source, bins, person=person, most_per_person=most_per_person, progress=progress)


def _report(learner: Learner, past: CountedSeries | None, *, json: bool) -> None:
    ranking = learner.ranking()
    if json:
        as_json(
            {
                "best": ranking[0].expert,
                "schedules": [
                    {"name": one.expert, "excess": one.excess, "standard_deviation": one.standard_deviation}
                    for one in ranking
                ],
                "rounds": learner.time,
                "epsilon": learner.epsilon,
                "delta": learner.delta,
                "contribution": learner.contribution,
            }
        )
    elif past is not None:
        rows = [(one.expert, f"{one.excess:.1f}", f"{_SURE * one.standard_deviation:.1f}") for one in ranking]
        title = "Cost beyond the best, in rounds at full cost; within the second number in 95 % of cases"
        table(title, ("schedule", "more", "within"), rows)
        close = sum(one.excess < _SURE * one.standard_deviation for one in ranking[1:])
        if close:
            say(f"{counted(close, 'other schedule')} may be as good as {ranking[0].expert}.")
        say(past.hides)
        say(
            f"spent: epsilon {learner.epsilon:g}, delta {learner.delta:g}. Learning from these visits again adds to it."
        )


def _play(learner: Learner, plan: Schedules, span: int, send: Callable[[str], None] | None, *, kept: bool) -> None:
    """Print the level of each round, and learn its count when it is over: a line of standard input."""
    if learner.time == learner.horizon:
        raise InputError(f"all {learner.horizon:,} rounds are used up: start a new state with its own budget.")
    most = f"{min(learner.regret_bound(), learner.horizon):.4g} of {counted(learner.horizon, 'round')}"
    note(f"the loss exceeds that of the best schedule by at most {most} at full loss, on average, whatever happens.")
    began = clock.time_ns() // 1_000_000 // span * span
    context = int(plan.contexts([began])[0])
    _show(learner.choose(context), began, send)
    for line in sys.stdin:
        try:
            learner.learn(line.split() if learner.persons else int(line), context)
        except ValueError:  # the text is not repeated: it may be a true count
            note("a line is not a whole number of 0 or above, and is left out: give one for each round.")
            continue
        now = clock.time_ns() // 1_000_000
        began = max(began, (now + span // 2) // span * span)  # a count may come a little early or late
        context = int(plan.contexts([began])[0])
        _show(learner.choose(context), began, send)
        if learner.time == learner.horizon:
            note("the last round is over: the level stays, and nothing more is learned.")
            return
    later = "the same command continues." if kept else "nothing of it is kept: with --state the next run continues."
    note(f"standard input ended after {learner.time:,} of {counted(learner.horizon, 'round')}; {later}")


def _show(play: Play, began: int, send: Callable[[str], None] | None) -> None:
    say(f"{shown(began)} {play.setting:g} {play.expert}")
    sys.stdout.flush()
    if send is not None:
        send(f"{play.setting:g}")


@contextmanager
def _sender(broker: str, topic: str, password_file: Path | None, ca: Path | None) -> Iterator[Callable[[str], None]]:
    """Publish the newest level, retained, whenever the broker can be reached."""
    if not topic or set(topic) & set("+#\0"):
        raise InputError(f"--topic {topic}: give a topic without + and #.")
    newest: list[str] = []
    published = Event()

    def publish(connection: Connection) -> None:
        if newest and not published.is_set():
            published.set()
            connection.publish(topic, newest[0].encode(), retain=True)

    def send(level: str) -> None:
        newest[:] = [level]
        published.clear()
        client.wake()

    client = MqttClient(
        parse_broker(broker, password_file=password_file, authority=ca),
        on_turn=publish,
        on_state=lambda state: note("connected to the broker" if state.connected else f"no broker: {state.reason}"),
    )
    client.start()
    try:
        yield send
    finally:
        if client.state.connected:
            published.wait(_PATIENCE)
        client.stop()
