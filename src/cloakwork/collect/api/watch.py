"""Looks for news while someone listens: what other collectors put into the store, and how far recovery is behind."""

import asyncio
import logging

from cloakwork.collect.api.errors import Refusal
from cloakwork.collect.api.parts import Parts
from cloakwork.collect.records import Problem, Report
from cloakwork.collect.store import StoreError

log = logging.getLogger(__name__)
LOOKED_AT = 8  # newest results of a site that are looked at each time
SLOWER = 2  # reports and problems are looked at every so many times


class Watch:
    """One look at each site that someone follows, again and again."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turn = 0
        self._followed: frozenset[str] = frozenset()
        self._lags: dict[str, tuple[int | None, int, bool, str]] = {}
        self._reports: dict[str, set[Report]] = {}
        self._problems: dict[str, set[Problem]] = {}

    async def run(self) -> None:
        """Until it is cancelled; what goes wrong is said once for each time that it begins."""
        failing = False
        while True:
            await asyncio.sleep(self._parts.settings.follow_s)
            try:
                await self._look()
                failing = False
            except (StoreError, Refusal) as problem:  # a refusal: too many others ask the store just now
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

    async def _look(self) -> None:
        self._turn += 1
        followed = self._parts.hub.followed
        for site in followed:
            new = site not in self._followed
            await self._look_for_results(site, quietly=new)
            if new or self._turn % SLOWER == 0:
                await self._look_for_reports(site, quietly=new)
            self._look_at_lag(site)
        self._followed = followed

    async def _look_for_results(self, site: str, *, quietly: bool) -> None:
        parts = self._parts
        page = await parts.work.read(parts.store.results, site, limit=LOOKED_AT, newest_first=True)
        parts.hub.found(page.items, quietly=quietly)

    async def _look_for_reports(self, site: str, *, quietly: bool) -> None:
        parts = self._parts
        reports = set(await parts.work.read(parts.store.reports, site))
        problems = set(await parts.work.read(parts.store.problems, site))
        if not quietly:
            parts.hub.reports(sorted(reports - self._reports.get(site, set())))
            parts.hub.problems(sorted(problems - self._problems.get(site, set()), key=lambda one: one.last))
        self._reports[site], self._problems[site] = reports, problems

    def _look_at_lag(self, site: str) -> None:
        lag = self._parts.live.lag(site)
        now = (lag.delay_ms, lag.waiting, lag.more, lag.reason)  # what changes by itself with time is no news
        if self._lags.get(site) != now:
            self._lags[site] = now
            self._parts.hub.lag(site, lag)
