"""Looks for news while someone listens: what other collectors put into the store, and how far recovery is behind."""

import asyncio
import logging
from collections.abc import Set

from cloakwork.collect.api.errors import Refusal
from cloakwork.collect.api.hub import Hub
from cloakwork.collect.api.needs import Live
from cloakwork.collect.api.work import Work
from cloakwork.collect.records import Problem, Report
from cloakwork.collect.store import Store, StoreError

log = logging.getLogger(__name__)
LOOKED_AT = 8  # newest results of a site that are looked at each time
SLOWER = 2  # reports and problems are looked at every so many times


class Watch:
    """A look every so many seconds at each site that someone follows."""

    def __init__(self, store: Store, work: Work, hub: Hub, live: Live, *, every_s: float) -> None:
        self._store, self._work, self._hub, self._live = store, work, hub, live
        self._every_s = every_s
        self._turn = 0
        self._followed: set[str] = set()
        self._beginning = asyncio.Lock()
        self._lags: dict[str, tuple[int | None, int, bool, str]] = {}
        self._reports: dict[str, set[Report]] = {}
        self._problems: dict[str, set[Problem]] = {}

    async def follow(self, sites: Set[str]) -> None:
        """All that comes to these sites after this call is news, and what is in the store already is not.

        A stream of them must be open, or they are forgotten again.
        """
        async with self._beginning:
            for site in sorted(sites - self._followed):
                await self._look_for_results(site, quietly=True)
                await self._look_for_reports(site, quietly=True)
                self._followed.add(site)

    async def run(self) -> None:
        """Until it is cancelled; what goes wrong is said once for each time that it begins."""
        failing = False
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self._look()
                failing = False
            except (StoreError, Refusal) as problem:  # a refusal: too many others ask the store just now
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

    async def _look(self) -> None:
        self._turn += 1
        self._followed &= self._hub.followed
        for site in sorted(self._followed):
            await self._look_for_results(site)
            if self._turn % SLOWER == 0:
                await self._look_for_reports(site)
            self._look_at_lag(site)

    async def _look_for_results(self, site: str, *, quietly: bool = False) -> None:
        page = await self._work.read(self._store.results, site, limit=LOOKED_AT, newest_first=True)
        self._hub.found(page.items, quietly=quietly)

    async def _look_for_reports(self, site: str, *, quietly: bool = False) -> None:
        reports = set(await self._work.read(self._store.reports, site))
        problems = set(await self._work.read(self._store.problems, site))
        if not quietly:
            self._hub.reports(sorted(reports - self._reports.get(site, set())))
            self._hub.problems(sorted(problems - self._problems.get(site, set()), key=lambda one: one.last))
        self._reports[site], self._problems[site] = reports, problems

    def _look_at_lag(self, site: str) -> None:
        lag = self._live.lag(site)
        now = (lag.delay_ms, lag.waiting, lag.more, lag.reason)  # what changes by itself with time is no news
        if self._lags.get(site) != now:
            self._lags[site] = now
            self._hub.lag(site, lag)
