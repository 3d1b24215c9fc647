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

from cloakwork._checks import FloatArray, rounded_down
from cloakwork.auditing.report_charts import bars, profile_chart
from cloakwork.auditing.result import Audit, Verdict, Witness

VERSION = 1
_HEADLINES = {
    Verdict.VIOLATION: ("violation", "The claim does not hold"),
    Verdict.NONE_FOUND: ("none", "No violation was found"),
    Verdict.WITHHELD: ("withheld", "Nothing can be concluded"),
}
_KEEPER = "device that keeps its promise and whose reports do not depend on each other"
_DOUBTED = "The claim does not hold, or the set-ups differ too much"
_PARTS = ("claimed", "tested", "found", "not_excluded", "never")
NEVER = (
    "That a claim holds. Reports can show that it is broken, never that it is kept: a sample misses events that "
    "are rare enough, or that no one thought of.",
    "That a device behaves at work as it did here. A device may notice the test and behave better meanwhile.",
    "That reports are independent. An audit can show that they are not; its conclusions hold for independent reports.",
    "Anything about other inputs. This audit compared two, and a claim is about all pairs of neighbours.",
    "Anything about other leaks: when the device sends, what it sends elsewhere, how much power it draws.",
)
NEVER_PURE = (
    "This claim has delta = 0. No number of reports can test such a claim in full: an event that happens once in a "
    "thousand times as many reports would break it as well."
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The subject of an audit, in words that fit into the sentences of a report.

    `name` is the maker of the claim, as the beginning of a sentence: "The sensor s07 of hall"; `inputs` name the two
    inputs within a sentence: "set-up 0" and "set-up 1". The others are whole sentences: the origin of the `claim`,
    `notes` of what else was seen, `limits` of this audit, `cautions` for the summary, and `doubt`, why a violation may
    have another cause than the device. The report then does not blame the device.
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
    """An audit with its subject and date, for people; use `str`, `to_json` or `to_html`."""

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

    def claimed(self) -> tuple[str, ...]:
        """The claim, as sentences."""
        audit = self.audit
        exact = (
            f"In symbols: epsilon = {audit.epsilon:.6g}, delta = {audit.delta:.6g}. For every event E, the "
            f"probability of E with one input is at most e^epsilon = {_times(math.exp(audit.epsilon))} times that "
            "with the other, plus delta."
        )
        return (exact, *self.subject.claim)

    def tested(self) -> tuple[str, ...]:
        """The test, as sentences."""
        audit = self.audit
        most = f" of at most {audit.ceiling:,}" if audit.reports_used < audit.ceiling else ""
        alarms = (
            f"All of them together raise a false alarm in at most {_of_hundred(1 - audit.confidence)} audits of a "
            f"{_KEEPER}.",
        )
        return (
            f"{audit.reports_used:,} reports{most} with each input.",
            f"Kinds of events that were tried: {', '.join(audit.events)}.",
            *(alarms if audit.independent else ()),
            "Reports were checked for depending on each other, and "
            + ("nothing of the kind was seen." if audit.independent else "they do."),
        )

    def found(self) -> tuple[str, ...]:
        """The findings, as sentences."""
        audit = self.audit
        same = f"All reports were the same, with both inputs: {audit.only}. Check that it measures at all."
        only = (same,) if audit.only else ()
        if audit.verdict is Verdict.WITHHELD:
            return (
                *only,
                f"Reports depend on each other: {audit.dependence}.",
                "An audit treats reports as independent, so its conclusions would not hold. Usual causes: the set-up "
                "had not settled, the device repeats its last report, or it uses noise twice, a fault in itself.",
                *self.subject.notes,
            )
        if audit.witness is None:
            return (*only, *self._bounds(), *self._contradiction(), *self.subject.notes)
        event = f"The event that {audit.witness.event} was found among {audit.witness.source}."
        return (*only, event, *self._bounds(), *self.subject.notes)

    def not_excluded(self) -> tuple[str, ...]:
        """Questions that this audit leaves open, as sentences."""
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            return ("Anything: the claim may hold or not.",)
        if audit.verdict is Verdict.VIOLATION:
            other = ("That the device keeps its promise, and the set-ups differed by more than was stated.",)
            return (
                *(other if self._doubt else ()),
                f"That it is worse. The bounds above hold with {self._sure}; the truth may lie far above them.",
            )
        upper = self._at_claim(audit.profile.upper, 1.0)
        seen = "" if upper > audit.delta else ", which the claim allows"
        return (
            f"A leak too small for {audit.reports_used:,} reports. Even among the events that the picture is of, delta "
            f"could be as large as {_up(upper)} at the claimed epsilon without this audit showing it{seen}. More "
            "reports narrow this down.",
            "A leak in other kinds of events than those that were tried.",
        )

    def never(self) -> tuple[str, ...]:
        """Limits of all audits of this kind, as sentences."""
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
            **{part: list(getattr(self, part)()) for part in ("claimed", "tested", "found")},
            **self.audit.to_json(),
            "not_excluded": list(self.not_excluded()),
            "never_proved": list(self.never()),
        }

    def to_html(self) -> str:
        """The report as one page that needs nothing else: no network, no script."""
        page = Template(files("cloakwork.auditing").joinpath("report.html").read_text(encoding="utf-8"))
        return page.substitute(
            title=escape(f"{self.headline}: audit of {self.subject.name[:1].lower()}{self.subject.name[1:]}"),
            kind=_HEADLINES[self.audit.verdict][0],
            headline=escape(self.headline),
            subject=escape(self.subject.name),
            summary=_escaped(self.summary),
            bars=self._bars(),
            **{part: _listed(getattr(self, part)()) for part in _PARTS},
            made=escape(f", {self.made}" if self.made else ""),
            picture=self._picture(),
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
            f"{self.subject.name} promises not to reveal which of two inputs it had, {first} or {second}: any "
            f"report is {much} with one as with the other{chance}."
        )

    def _outcome(self) -> Iterable[str]:
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            yield (
                "They depend on each other. This method needs independent reports, so it says nothing about the claim."
            )
            return
        if audit.witness is None:
            yield "We found nothing that breaks the promise by more than chance explains."
            yield "That does not prove the promise: this many reports did not show it broken."
            return
        first, second = (
            f"{_percent(share)} of the {audit.witness.counted} with {name}"
            for share, name in zip(audit.witness.frequencies, self.subject.inputs, strict=True)
        )
        yield f"We found that {audit.witness.event} in {first}, and in {second}."
        yield from self._excess(audit.witness)
        yield f"A {_KEEPER} would look like this by chance in at most {_of_hundred(1 - audit.confidence)} audits."
        yield self._doubt or "We conclude that this one does not keep it."

    @property
    def _doubt(self) -> str:
        return self.subject.doubt if self.audit.verdict is Verdict.VIOLATION else ""

    @property
    def _sure(self) -> str:
        return f"{100 * self.audit.confidence:g} % confidence"

    def _bounds(self) -> Iterable[str]:
        audit = self.audit
        allowed = ", which the claim allows" if audit.witness is None else ""
        for at, name, lower in (
            (f"delta = {audit.delta:.6g}", "epsilon", audit.epsilon_lower),
            (f"epsilon = {audit.epsilon:.6g}", "delta", audit.delta_lower),
        ):
            if lower > 0:
                yield f"With {self._sure}: at {at}, {name} is at least {rounded_down(lower)}{allowed}."
            else:
                yield f"At {at}, these reports show no {name} above 0."

    def _contradiction(self) -> Iterable[str]:
        """The band and the bets may disagree; which of them counts."""
        if self._at_claim(self.audit.profile.lower, 0.0) > self.audit.delta:
            yield (
                "The band in the picture nevertheless lies above the claim. The verdict rests on the bets alone, which "
                f"did not reject it; each is wrong in at most {_of_hundred(1 - self.audit.confidence)} audits. Collect "
                "more reports."
            )

    def _at_claim(self, deltas: FloatArray, otherwise: float) -> float:
        """A curve of the profile at the claimed epsilon."""
        places = np.flatnonzero(self.audit.profile.epsilons >= self.audit.epsilon)
        return float(deltas[places[0]]) if len(places) else otherwise

    def _excess(self, witness: Witness) -> Iterable[str]:
        often, rare = witness.favoured
        allowed = self._allowed(witness)
        if often <= allowed:
            return  # the event has been chosen anew since it won
        if rare > 0:
            yield (
                f"That is {_times(often / rare)} times as often, where the promise allows {_times(allowed / rare)} "
                f"times ({_percent(allowed)})."
            )
            factor = rounded_down(math.exp(min(self.audit.epsilon_lower, 700.0)))
            both = f", give or take {_percent(self.audit.delta)} again" if self.audit.delta else ""
            yield (
                f"Some of that may be luck; with {self._sure}, something is at least {factor} times as likely with one "
                f"as with the other, where at most {_times(math.exp(self.audit.epsilon))} times was promised{both}."
            )
        elif allowed > 0:
            yield (
                f"By the promise, what never happens with one may happen in at most {_percent(allowed)} with the other."
            )
        else:
            yield "By the promise, what never happens with one never happens with the other."

    def _allowed(self, witness: Witness) -> float:
        factor = math.exp(witness.span * self.audit.epsilon)
        return min(1.0, factor * witness.favoured[1] + witness.span * self.audit.delta)

    def _bars(self) -> str:
        witness = self.audit.witness
        if witness is None:
            return ""
        return bars(
            f"How often {witness.event}",
            [(f"with {name}", share) for name, share in zip(self.subject.inputs, witness.frequencies, strict=True)],
            ("the most that was promised", self._allowed(witness)),
        )

    def _picture(self) -> str:
        """The profile with its band; empty where the verdict is withheld."""
        audit = self.audit
        if audit.verdict is Verdict.WITHHELD:
            return ""
        caption = (
            f"The delta that is needed at each epsilon, from {audit.profile.reports:,} reports with each input, for "
            f"{audit.profile.events}. The band holds everywhere at once with {self._sure}; the cross is the claim. "
            "Other events may need more than the band shows. The verdict rests on another, sharper test."
        )
        if not audit.profile.reports:
            caption = "There were too few reports to draw a curve."
        return f"<figure>{profile_chart(audit)}<figcaption>{escape(caption)}</figcaption></figure>"


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


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"<li>{_escaped(line)}</li>" for line in lines)


def _escaped(text: str) -> str:
    return escape(text).replace(" %", "&nbsp;%").replace(" °", "&nbsp;°")


def _data(values: dict[str, Any]) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
