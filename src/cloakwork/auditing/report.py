"""An audit as one page for people: what was claimed, tested and found, and what was not excluded."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from cloakwork._checks import down
from cloakwork.auditing.charts import bars, profile_chart
from cloakwork.auditing.result import Audit, Verdict, Witness

VERSION = 1
_HEADLINES = {
    Verdict.VIOLATION: ("violation", "The claim does not hold"),
    Verdict.NONE_FOUND: ("none", "No violation was found"),
    Verdict.WITHHELD: ("withheld", "Nothing can be concluded"),
}
NEVER = (
    "That a claim holds. Reports can show that it is broken, and never that it is kept: an event that is rare enough, "
    "or that nobody thought of, is in no sample.",
    "That a device behaves at work as it did here. Whoever is examined may notice it, and behave better meanwhile.",
    "Anything about other inputs. Two were compared, and a claim is about all pairs of neighbours.",
    "Anything about what else a device gives away: when it sends, what it sends elsewhere, how much power it draws.",
)
NEVER_PURE = (
    "This claim has delta = 0, and such a claim cannot be tested in full by any number of reports: what happens once "
    "in a thousand times as many would break it as well."
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was audited, in words that begin and end a sentence where they stand.

    Parameters
    ----------
    name
        Who makes the claim, as the beginning of a sentence: "The sensor s07 of hall".
    inputs
        What the two inputs are called within a sentence: "set-up 0" and "set-up 1".
    claim, notes, limits
        More sentences: where the claim comes from, what else was seen, what else this audit says nothing about.
    """

    name: str
    inputs: tuple[str, str] = ("input 0", "input 1")
    claim: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """An audit, what it was of, and when it was made, in words; for `str`, `to_json` and `to_html`."""

    audit: Audit
    subject: Subject
    made: str = ""

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return _HEADLINES[self.audit.verdict][1]

    @property
    def summary(self) -> str:
        """What a reader needs who reads one paragraph only."""
        return " ".join([self._promise(), self._asked(), *self._outcome()])

    def claimed(self) -> tuple[str, ...]:
        """What was claimed, as sentences."""
        audit = self.audit
        exact = (
            f"In symbols: epsilon = {audit.epsilon:.6g}, delta = {audit.delta:.6g}. For every event E, the "
            f"probability of E with one input is at most e^epsilon = {_times(math.exp(audit.epsilon))} times that "
            "with the other, plus delta."
        )
        return (exact, *self.subject.claim)

    def tested(self) -> tuple[str, ...]:
        """What was tested, as sentences."""
        audit = self.audit
        most = f" of at most {audit.ceiling:,}" if audit.reports_used < audit.ceiling else ""
        return (
            f"{audit.reports_used:,} reports{most} with each input.",
            f"Kinds of events that were tried: {', '.join(audit.events)}.",
            f"All of them together raise a false alarm in at most {_of_hundred(1 - audit.confidence)} audits of a "
            "device that keeps its promise.",
            "Reports one after the other were checked for depending on each other"
            + (", and nothing of the kind was seen." if audit.independent else f": {audit.dependence}."),
        )

    def found(self) -> tuple[str, ...]:
        """What was found, as sentences."""
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            return (
                f"Reports depend on each other: {audit.dependence}.",
                "An audit counts reports as if each were drawn afresh, so what it would say is not to be trusted. Let "
                "the set-up settle, read the device as it really reports, and audit again.",
                *self.subject.notes,
            )
        sure = f"With {100 * audit.confidence:g} % confidence:"
        lines = [
            f"{sure} at delta = {audit.delta:.6g}, epsilon is at least {down(audit.epsilon_lower)}.",
            f"{sure} at epsilon = {audit.epsilon:.6g}, delta is at least {down(audit.delta_lower)}.",
        ]
        if audit.witness is not None:
            lines.insert(0, f"{self._witness(audit.witness)} (found among: {audit.witness.source}).")
        return (*lines, *self.subject.notes)

    def not_excluded(self) -> tuple[str, ...]:
        """What this audit leaves open, as sentences."""
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            return ("Anything: the claim may hold or not.",)
        if audit.verdict is Verdict.VIOLATION:
            return ("That it is worse. The bounds above are what is certain; the truth may lie far above them.",)
        places = np.flatnonzero(audit.profile.epsilons >= audit.epsilon)
        upper = float(audit.profile.upper[places[0]]) if len(places) else 1.0
        seen = "" if upper > audit.delta else ", which the claim allows"
        return (
            f"A leak too small for {audit.reports_used:,} reports. Even among the events that the picture is of, delta "
            f"could be as large as {_up(upper)} at the claimed epsilon without this audit showing it{seen}. More "
            "reports narrow this down.",
            "A leak in events of other kinds than those that were tried.",
        )

    def never(self) -> tuple[str, ...]:
        """What no audit of this kind can prove, as sentences."""
        pure = (NEVER_PURE,) if self.audit.delta == 0 else ()
        return (*NEVER, *pure, *self.subject.limits)

    def to_json(self) -> dict[str, Any]:
        """The report as plain values, ready for `json.dumps`."""
        return {
            "v": VERSION,
            "headline": self.headline,
            "summary": self.summary,
            "made": self.made,
            "subject": asdict(self.subject),
            "claimed": list(self.claimed()),
            "tested": list(self.tested()),
            "found": list(self.found()),
            **self.audit.to_json(),
            "not_excluded": list(self.not_excluded()),
            "never_proved": list(self.never()),
        }

    def to_html(self) -> str:
        """The report as one page that needs nothing else: no network, no script."""
        audit, (kind, headline) = self.audit, _HEADLINES[self.audit.verdict]
        page = Template(files("cloakwork.auditing").joinpath("report.html").read_text(encoding="utf-8"))
        return page.substitute(
            title=escape(f"{headline}: audit of {_small(self.subject.name)}"),
            kind=kind,
            headline=escape(headline),
            subject=escape(self.subject.name),
            summary=_escaped(self.summary),
            bars=self._bars(),
            claimed=_listed(self.claimed()),
            tested=_listed(self.tested()),
            found=_listed(self.found()),
            not_excluded=_listed(self.not_excluded()),
            never=_listed(self.never()),
            made=escape(f", {self.made}" if self.made else ""),
            chart=profile_chart(audit),
            chart_words=escape(_chart_words(audit)),
            data=_data(self.to_json()),
        )

    def __str__(self) -> str:
        parts = [f"{self.headline}.", "", self.summary]
        for title, lines in (
            ("Found", self.found()),
            ("Not excluded", self.not_excluded()),
            ("What an audit can never prove", self.never()),
        ):
            parts += ["", f"{title}:", *(f"  - {line}" for line in lines)]
        return "\n".join(parts)

    def _promise(self) -> str:
        audit, (first, second) = self.audit, self.subject.inputs
        factor = _times(math.exp(audit.epsilon))
        much = "as likely" if factor == "1" else f"at most {factor} times as likely"
        chance = f", give or take a probability of {_percent(audit.delta)}" if audit.delta else ""
        return (
            f"{self.subject.name} promises not to give away which of two things it was fed, {first} or {second}: "
            f"whatever it reports shall be {much} with one as with the other{chance}."
        )

    def _asked(self) -> str:
        return f"We took {self.audit.reports_used:,} reports with each."

    def _outcome(self) -> Iterable[str]:
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            yield (
                "They depend on each other, and this method is for reports that do not: it says nothing about the "
                "claim."
            )
            return
        if audit.witness is None:
            yield "We found nothing that happens more often with one than the promise allows."
            yield "That does not prove the promise: it says that this many reports did not show it broken."
            return
        yield self._witness(audit.witness) + "."
        yield from self._excess(audit.witness)
        yield (
            "A device that keeps its promise would look like this by chance in at most "
            f"{_of_hundred(1 - audit.confidence)} audits. We conclude that this one does not keep it."
        )

    def _witness(self, witness: Witness) -> str:
        first, second = (
            f"{_percent(share)} of the reports with {name}"
            for share, name in zip(witness.frequencies, self.subject.inputs, strict=True)
        )
        return f"We found that {witness.event} in {first}, and in {second}"

    def _excess(self, witness: Witness) -> Iterable[str]:
        often, rare = _favoured(witness)
        allowed = self._allowed(witness)
        if often <= allowed:
            return  # the event has been chosen anew since it won
        if rare > 0:
            yield (
                f"That is {_times(often / rare)} times as often, where the promise allows {_times(allowed / rare)} "
                f"times ({_percent(allowed)})."
            )
            yield f"Some of that may be luck: what is certain is a factor of {self._certain()} or more."
        elif allowed > 0:
            yield (
                f"By the promise, what never happens with one may happen in at most {_percent(allowed)} with the other."
            )
        else:
            yield "By the promise, what never happens with one never happens with the other."

    def _certain(self) -> str:
        beyond = f", beyond that probability of {_percent(self.audit.delta)}" if self.audit.delta else ""
        return f"{down(math.exp(min(self.audit.epsilon_lower, 700.0)))}{beyond}"

    def _allowed(self, witness: Witness) -> float:
        return min(1.0, math.exp(self.audit.epsilon) * _favoured(witness)[1] + self.audit.delta)

    def _bars(self) -> str:
        witness = self.audit.witness
        if witness is None:
            return ""
        return bars(
            f"How often {witness.event}",
            [(f"with {name}", share) for name, share in zip(self.subject.inputs, witness.frequencies, strict=True)],
            ("the most that was promised", self._allowed(witness)),
        )


def _favoured(witness: Witness) -> tuple[float, float]:
    """How often the event happened on the input that it is too likely on, and on the other."""
    first, second = witness.frequencies
    return (first, second) if witness.direction == "0->1" else (second, first)


def _chart_words(audit: Audit) -> str:
    if not audit.profile.reports:
        return "There were too few reports to draw a curve."
    return (
        f"The delta that is needed at each epsilon, from {audit.profile.reports:,} reports with each input, for "
        f"{audit.profile.events}. The band holds everywhere at once with {100 * audit.confidence:g} % confidence; the "
        "cross is the claim. A claim below the band is broken. Other events may need more than the band shows. The "
        "verdict rests on a sharper test than this picture."
    )


def _times(value: float) -> str:
    """A factor as people read it: three digits where it is small."""
    if value >= 1e6:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(share: float) -> str:
    return "none" if share == 0 else f"{100 * share:.3g} %"


def _of_hundred(share: float) -> str:
    """A probability as so many of a hundred, or of as many as it takes."""
    base = 100
    while share * base < 0.995 and base < 10**9:
        base *= 10
    return f"{share * base:.3g} of {base:,}"


def _up(value: float) -> str:
    """Three digits, rounded up."""
    if value <= 0:
        return "0"
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.3g}"


def _small(name: str) -> str:
    return name[:1].lower() + name[1:]


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"<li>{_escaped(line)}</li>" for line in lines)


def _escaped(text: str) -> str:
    return escape(text).replace(" %", "&nbsp;%")


def _data(values: dict[str, Any]) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
