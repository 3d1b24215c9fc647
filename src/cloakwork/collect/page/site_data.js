// The data of one site: the newest result, the moment shown, its lanes and its health, and live events.

import * as api from "./api.js";

const HEALTH_MS = 10_000;
const SOON_MS = 1000; // after an event; others that follow it are part of the same answer
const LANES_MS = 3000; // between two requests for the lanes
const MAX_WHOLE = 300; // results with their maps
const TRAIL_FRAMES = 10; // at least
const TRAIL_MS = 600_000;

export class SiteData {
  /** `on` is called as `on.change(what)` with "moment", "health" or "lanes", `on.link()` and `on.error(problem)`. */
  constructor(info, geometry, on) {
    Object.assign(this, { info, geometry, on, name: info.name, open: true, mode: "live", whole: new Map(), solved: 0 });
    Object.assign(this, { latest: null, shown: null, health: null, lanes: null, ends: new Map(), range: null });
    api.setClock(info.now, info);
  }

  async start() {
    this.events = new api.EventStream(this.name, {
      onResult: (result) => this.attempt(() => this._add(result)),
      onHealth: () => {
        this.soon ??= setTimeout(() => {
          this.soon = null;
          this.loadHealth();
        }, SOON_MS);
      },
      onState: (link) => {
        if (!this.open) return;
        if (link === "lost") this.attempt(() => api.getSites()); // a request says why the stream ended
        else if (this.lost) this.refresh(true); // what came meanwhile
        this.lost = link === "lost";
      },
    });
    this.timer = setInterval(() => document.hidden || (this.events.open ? this.loadHealth() : this.refresh(true)), HEALTH_MS);
    await this.refresh(true);
  }

  close() {
    this.open = false;
    this.events?.close();
    clearInterval(this.timer);
    for (const timer of [this.soon, this.later]) clearTimeout(timer);
  }

  /** Runs requests that may fail; a closed site ignores errors. */
  async attempt(work) {
    try {
      return await work();
    } catch (problem) {
      if (this.open) this.on.error(problem);
      return undefined;
    }
  }

  /** Loads the health, and with `all` the newest result and the lanes; the clock comes first, but for a first picture. */
  async refresh(all) {
    if (this.latest) await this.loadHealth();
    if (all) await this.attempt(() => this._loadNewest());
    await Promise.all([this.health ? null : this.loadHealth(), all ? this.loadLanes() : null]);
  }

  async _loadNewest() {
    const newest = await this._before(api.now() + this.info.ahead_ms); // later ones have a wrong clock
    this.on.link();
    this.newest = newest?.time;
    await this._catchUp();
  }

  loadHealth() {
    return this.attempt(async () => {
      const health = await api.getHealth(this.name);
      if (!this.open) return;
      this.health = health;
      api.setClock(health.now, this.info);
      this.on.link();
      this.on.change("health");
    });
  }

  /** Loads the lanes of the range, from its first result on. */
  loadLanes() {
    clearTimeout(this.later);
    this.later = null;
    return this.attempt(async () => {
      const { range } = this;
      let lanes = trimmed(await api.getTimeline(this.name, range(api.now())));
      if (lanes && lanes.cut > 0.5) lanes = trimmed(await api.getTimeline(this.name, lanes.since)) ?? lanes;
      if (!this.open || range !== this.range) return;
      Object.assign(this, { lanes, ends: new Map() });
      this.on.change("lanes");
    });
  }

  /** Adds a result from an event; of many at once only the newest is drawn. */
  async _add(result) {
    if (!this.open || result.failed) return; // one device can make frames fail: they must not hide others
    if (!result.settled && result.solved > this.solved) {
      this.solved = result.solved;
      api.setClock(result.solved, this.info);
    }
    this.whole.delete(result.time);
    this.later ??= setTimeout(() => this.loadLanes(), LANES_MS);
    if (this.newest === undefined || this.newest < result.time) this.newest = result.time;
    this.fetching ??= this._catchUp().finally(() => (this.fetching = null));
    await this.fetching;
  }

  async _catchUp() {
    while (this.open && this.newest !== undefined && this.latest?.time !== this.newest) {
      const time = this.newest;
      const whole = await this.get(time);
      if (whole) this.latest = whole;
      else if (this.newest === time) this.newest = this.latest?.time; // it was erased meanwhile
    }
    if (!this.open) return;
    if (this.newest === undefined) this.latest = null;
    if (this.mode === "live") await this.show("live");
  }

  /** The result of a time with its map; null where there is none. */
  async get(time) {
    const result = this.whole.get(time) ?? (await api.getResult(this.name, time));
    if (!result) return null;
    this.whole.delete(time);
    this.whole.set(time, result);
    if (this.whole.size > MAX_WHOLE) this.whole.delete(this.whole.keys().next().value);
    return result;
  }

  /** Shows "live", or what the lanes have at a time; the last one asked for wins. */
  async show(asked) {
    if (asked !== "live" && !this.lanes) return;
    this.mode = asked;
    this.showing ??= this.attempt(() => this._showAsked()).finally(() => (this.showing = null));
    await this.showing;
  }

  async _showAsked() {
    for (let asked = null; this.open && asked !== this.mode;) {
      asked = this.mode;
      const result = asked === "live" ? this.latest : await this._inColumn(asked);
      if (!this.open) return;
      this.shown = result ?? null;
      this.on.change("moment");
    }
  }

  /** The last result of the lanes' column that holds a time, or of the one before; that one is drawn there. */
  async _inColumn(time) {
    const { ends } = this; // other lanes may arrive meanwhile
    const { since, step_ms: step, has } = this.lanes;
    const k = has.findLastIndex((there, column) => there && since + column * step <= time);
    const end = since + (Math.max(0, k) + 1) * step;
    if (!ends.has(end)) ends.set(end, (await this._before(end - 1))?.time);
    return ends.get(end) === undefined ? null : this.get(ends.get(end));
  }

  /** Shows a column with a result, so many after the one shown; past the last one, the page is live again. */
  step(by) {
    const at = this.mode === "live" ? this.shown?.time : this.mode; // keys may come faster than results
    if (at === undefined || !this.lanes) return undefined;
    const { since, step_ms: step, has } = this.lanes;
    const columns = has.flatMap((there, k) => (there ? [since + k * step] : []));
    const next = columns.findLastIndex((start) => start <= at) + by;
    return this.show(next < columns.length - 1 ? columns[Math.max(0, next)] : "live");
  }

  async _before(time) {
    return (await api.getResults(this.name, { until: Math.floor(time) + 1, limit: 1 })).at(-1);
  }

  /** The points of each track that is shown, in the last minutes: final ones where there are, as live ones jump. */
  async trails(result) {
    const { lag, period_ms: period, follows } = this.info;
    const long = Math.max(TRAIL_FRAMES * period, TRAIL_MS) + lag * period;
    const results = await api.getResults(this.name, { since: Math.max(0, result.time - long), until: result.time + 1 });
    const kept = results.filter(({ settled, time }) => settled || !follows || time === result.time);
    const tracks = kept.flatMap((one) => one.tracks);
    return result.sources.map((source) => tracks.filter(({ label }) => label === source.label));
  }
}

/** Lanes from their first result on, with the share that was `cut`; null without any result. */
function trimmed({ since, until, step_ms: step, counts, zones }) {
  const columns = counts ?? zones[0]?.probability ?? [];
  const has = columns.map((_, k) => counts?.[k] != null || zones.some(({ probability }) => probability[k] != null));
  const first = has.indexOf(true);
  if (first < 0) return null;
  const cut = (values) => values?.slice(first);
  const lanes = zones.map(({ id, probability, occupied }) => ({ id, probability: cut(probability), occupied: cut(occupied) }));
  const found = { since: since + first * step, until, step_ms: step, counts: cut(counts) ?? null, zones: lanes };
  return { ...found, has: cut(has), cut: first / has.length };
}
