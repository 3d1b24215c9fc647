"""An audit for people: one list of sections, shown as text, as JSON, or as a page."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, percent, rounded_down, rounded_up
from cloakwork.auditing.audit import Audit, Verdict, Witness

_HEADLINES = {
    Verdict.VIOLATION: ("violation", "The claim does not hold"),
    Verdict.NONE_FOUND: ("none", "No violation was found"),
    Verdict.WITHHELD: ("withheld", "Nothing can be concluded"),
}
_TITLES = {
    "claimed": "What was claimed",
    "tested": "What was tested",
    "found": "What was found",
    "not_excluded": "What was not excluded",
    "never_proved": "What an audit can never prove",
}
_DOUBTED = "The claim does not hold, or the set-ups differ too much"
_NEVER = (
    "That a claim holds. Reports can show that it is broken, never that it is kept: a sample misses events that are "
    "rare enough, or that no one thought of.",
    "That a device behaves at work as it did here. A device may notice the test and behave better meanwhile.",
    "That reports are independent. An audit can show that they are not; its conclusions hold for independent reports.",
    "Anything about other inputs. This audit compared two, and a claim is about all pairs of neighbours.",
    "Anything about other leaks: when the device sends, what it sends elsewhere, how much power it draws.",
)
_NEVER_PURE = (
    "This claim has delta = 0. No number of reports can test it in full: an event that happens once in a thousand "
    "times as many reports would break it as well."
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was audited, in words that fit into the sentences of a report.

    `name` begins a sentence: "The sensor s07 of hall"; `inputs` name the two inputs. The others are whole sentences:
    the origin of the `claim`, `notes` of what else was seen, `limits` of this audit, `cautions` for the summary, and
    `doubt`, why a violation may have another cause than the device.
    """

    name: str
    inputs: tuple[str, str] = ("input 0", "input 1")
    claim: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """An audit, its subject and its date, for people: use `str`, `to_json` or `to_html`."""

    audit: Audit
    subject: Subject
    made: str = ""

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return _DOUBTED if self._doubt else _HEADLINES[self.audit.verdict][1]

    @property
    def summary(self) -> str:
        """The whole result in one paragraph."""
        took = f"We took {self.audit.reports_used:,} reports with each."
        return " ".join([self._promise(), took, *self._outcome(), *self.subject.cautions])

    def sections(self) -> dict[str, tuple[str, ...]]:
        """Return the sentences of each section."""
        audit, never = self.audit, (_NEVER_PURE,) if self.audit.delta == 0 else ()
        return {
            "claimed": (
                f"In symbols: epsilon = {audit.epsilon:.6g}, delta = {audit.delta:.6g}. For every event E, the "
                f"probability of E with one input is at most e^epsilon = {_times(math.exp(audit.epsilon))} times its "
                "probability with the other, plus delta.",
                *self.subject.claim,
            ),
            "tested": (
                f"{audit.reports_used:,} reports of at most {audit.ceiling:,} with each input.",
                f"Kinds of events that were tried: {', '.join(audit.events)}. Together they raise a false alarm in at "
                f"most {percent(1 - audit.confidence)} of audits of devices that keep their promise and whose reports "
                "are independent.",
            ),
            "found": (*self._found(), *self.subject.notes),
            "not_excluded": tuple(self._not_excluded()),
            "never_proved": (*_NEVER, *never, *self.subject.limits),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, ready for `json.dumps`."""
        about = {"headline": self.headline, "summary": self.summary, "made": self.made, "subject": asdict(self.subject)}
        return {"v": 1, **self.audit.to_json(), **about, **{k: list(v) for k, v in self.sections().items()}}

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else: no network, no script."""
        page = Template(files("cloakwork.auditing").joinpath("report.html").read_text(encoding="utf-8"))
        data = json.dumps(self.to_json(), allow_nan=False)
        lists = (
            f"<h2>{_TITLES[name]}</h2>\n<ul>\n" + "\n".join(f"<li>{escape(line)}</li>" for line in lines) + "\n</ul>"
            for name, lines in self.sections().items()
        )
        return page.substitute(
            title=escape(f"{self.headline}: audit of {self.subject.name}"),
            kind=_HEADLINES[self.audit.verdict][0],
            headline=escape(self.headline),
            subject=escape(self.subject.name),
            summary=escape(self.summary),
            sections="\n".join(lists),
            made=escape(f", {self.made}" if self.made else ""),
            data=data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        )

    def __str__(self) -> str:
        parts = [f"{self.headline}.", "", self.summary]
        for name, lines in self.sections().items():
            parts += ["", f"{_TITLES[name]}:", *(f"  - {line}" for line in lines)]
        return "\n".join(parts)

    @property
    def _doubt(self) -> str:
        return self.subject.doubt if self.audit.verdict is Verdict.VIOLATION else ""

    def _promise(self) -> str:
        audit, (first, second) = self.audit, self.subject.inputs
        chance = f", give or take a probability of {percent(audit.delta)}" if audit.delta else ""
        return (
            f"{self.subject.name} promises not to reveal which of two inputs it had, {first} or {second}: any report "
            f"is at most {_times(math.exp(audit.epsilon))} times as likely with one as with the other{chance}."
        )

    def _outcome(self) -> Iterable[str]:
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            yield "They depend on each other. This method needs independent reports: it says nothing about the claim."
        elif audit.witness is None:
            yield "We found nothing that breaks the promise by more than chance explains."
            yield "That does not prove the promise: this many reports did not show it broken."
        else:
            shares = zip(audit.witness.frequencies, self.subject.inputs, strict=True)
            first, second = (f"{percent(share)} of the reports with {name}" for share, name in shares)
            yield f"We found that {audit.witness.event} in {first}, and in {second}."
            yield from self._excess(audit.witness)
            yield self._doubt or "We conclude that it does not keep its promise."

    def _excess(self, witness: Witness) -> Iterable[str]:
        rare, often = sorted(witness.frequencies)
        allowed = math.exp(witness.span * self.audit.epsilon) * rare + witness.span * self.audit.delta
        if often > allowed:  # otherwise the event has been chosen again since it won
            yield f"Where it happens in {percent(rare)} with one, the promise allows {percent(allowed)} with the other."
        yield (
            f"Some of that may be luck; with {percent(self.audit.confidence)} confidence, the epsilon of this device "
            f"is at least {rounded_down(self.audit.epsilon_lower)} where {self.audit.epsilon:.6g} was promised."
        )

    def _found(self) -> Iterable[str]:
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            yield f"Reports depend on each other: {audit.dependence}."
            yield (
                "Usual causes: the set-up had not settled, the device repeats its last report, or it uses noise twice, "
                "which is a fault in itself."
            )
            return
        if audit.witness is not None:
            yield f"The event that {audit.witness.event} was found among {audit.witness.source}."
        sure = f"With {percent(audit.confidence)} confidence"
        yield f"{sure}, at delta = {audit.delta:.6g}, epsilon is at least {rounded_down(audit.epsilon_lower)}."
        yield f"{sure}, at epsilon = {audit.epsilon:.6g}, delta is at least {rounded_down(audit.delta_lower)}."
        if audit.witness is None and _at(audit, audit.profile.lower, 0.0) > audit.delta:
            yield "The privacy curve lies above the claim, which the bets did not reject: take more reports."

    def _not_excluded(self) -> Iterable[str]:
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            yield "Anything: the claim may hold or not."
        elif audit.verdict is Verdict.VIOLATION:
            if self._doubt:
                yield "That the device keeps its promise, and the set-ups differed by more than was stated."
            yield "That it is worse. The bounds above may lie far below the truth."
        else:
            upper = rounded_up(_at(audit, audit.profile.upper, 1.0), 3)
            yield (
                f"A leak too small for {audit.reports_used:,} reports. Even among {audit.profile.events}, delta could "
                f"be as large as {upper} at the claimed epsilon. More reports narrow this down."
            )
            yield "A leak in other kinds of events than those that were tried."


def _at(audit: Audit, deltas: FloatArray, otherwise: float) -> float:
    places = np.flatnonzero(audit.profile.epsilons >= audit.epsilon)
    return float(deltas[places[0]]) if len(places) else otherwise


def _times(value: float) -> str:
    return f"{value:.1e}" if value >= 1e6 else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
