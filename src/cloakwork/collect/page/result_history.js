// Results of a site by time: the newest as they arrive, and those around a past moment.

import * as api from "./api.js";

const MOST = 3000; // without their maps
const MOST_WHOLE = 300;
const AHEAD = 4; // results to load early
const TRAIL_MS = 600_000;
const TRAIL_FRAMES = [10, 300]; // at least and at most
const TRAIL_POINTS = 3000; // of all tracks together

/** Neighbouring results without their maps, from a time to another. */
class Stretch {
  constructor(items, from, to) {
    Object.assign(this, { items, from, to });
  }

  has(from, to) {
    return from >= this.from && to <= this.to;
  }

  /** Adds a result; the settled one of a time replaces the live one. */
  add(result) {
    const before = this.items.findLastIndex(({ time }) => time <= result.time);
    const again = this.items[before]?.time === result.time;
    this.items.splice(again ? before : before + 1, again ? 1 : 0, result);
    if (this.items.length > MOST) this.from = this.items.shift().time + 1;
  }
}

export class ResultHistory {
  constructor({ name, period_ms: period, ahead_ms: ahead, lag, follows }) {
    const late = follows ? lag * period : 0; // until a frame is settled
    Object.assign(this, { name, period, ahead, late });
    this.fit(1);
    this.recent = new Stretch([], Infinity, Infinity);
    this.past = new Stretch([], Infinity, -Infinity);
    this.whole = new Map();
    this.coming = new Map();
  }

  /** Sets how far trails go back: not as far with many people. */
  fit(people) {
    const frames = Math.max(TRAIL_FRAMES[0], Math.min(TRAIL_MS / this.period, TRAIL_FRAMES[1], TRAIL_POINTS / people));
    this.trail = this.late + frames * this.period;
  }

  /** Loads the newest results, as many as trails need. */
  async load() {
    const from = Math.max(0, Math.floor(api.now() - this.trail - this.late - 3 * this.period));
    const until = Math.ceil(api.now() + this.ahead); // later ones have a wrong clock
    const found = await api.getResults(this.name, { since: from, until });
    const items = found.length ? found : await api.getResults(this.name, { until, limit: 10 });
    this.recent = new Stretch(items, from, Infinity);
  }

  add(result) {
    this.recent.add(result);
    this.whole.delete(result.time);
    this.coming.delete(result.time);
  }

  get newest() {
    return this.recent.items.at(-1);
  }

  /** The newest result that is settled, without its map. */
  get settled() {
    return this.recent.items.findLast((result) => result.settled);
  }

  /** The result of a time with its map; null where there is none. */
  async get(time) {
    const result = this.whole.get(time) ?? (await this.coming.get(time)) ?? (await api.getResult(this.name, time));
    if (!result) return null;
    if (this.recent.items.some((one) => one.time === time && one.settled > result.settled)) return result; // too old
    this.whole.delete(time);
    this.whole.set(time, result);
    if (this.whole.size > MOST_WHOLE) this.whole.delete(this.whole.keys().next().value);
    return result;
  }

  /** Loads the next results, earlier (-1) or later (1), of times that `has` knows. */
  expect(time, by, has) {
    for (let k = 1; k <= AHEAD; k += 1) {
      const next = time + k * by * this.period;
      if (this.whole.has(next) || this.coming.has(next) || !has(next)) continue;
      const found = this.get(next).catch(() => null); // asked again if needed
      this.coming.set(next, found.finally(() => this.coming.delete(next)));
    }
  }

  /** The stretch that holds a period, if it is loaded. */
  _holding(from, to) {
    return [this.recent, this.past].find((stretch) => stretch.has(from, to));
  }

  /** Loads the results around a time, with the trails that lead there; gives whether they are new. */
  async surround(time) {
    const [from, to] = [Math.max(0, time - this.trail), time + this.trail];
    if (this._holding(from, time)) return false;
    const items = await api.getResults(this.name, { since: Math.floor(from), until: Math.ceil(to) });
    this.past = new Stretch(items, from, to);
    return true;
  }

  /** The result nearest to a time; in a gap the last one before it, or the first one. */
  async nearest(time) {
    const far = (result) => Math.abs(result.time - time);
    const items = this._holding(time - this.period, time + this.period)?.items ?? [];
    if (!items.length) {
      const slot = Math.round(time / this.period) * this.period; // at which devices measure
      return (await this.get(slot)) ?? (await this.before(time)) ?? this._after(time);
    }
    return items.reduce((best, result) => (far(best) <= far(result) ? best : result));
  }

  /** The result so many frames after the one of a time. */
  async step(time, by) {
    const items = this._holding(time, time)?.items ?? [];
    const at = items.findIndex((result) => result.time === time);
    if (at >= 0 && items[at + by]) return items[at + by];
    return by < 0 ? this.before(time + (by + 1) * this.period - 1) : this._after(time + (by - 1) * this.period);
  }

  async before(time) {
    return (await api.getResults(this.name, { until: Math.floor(time) + 1, limit: 1 })).at(-1);
  }

  /** The next result after a gap, which is searched in ever longer spans. */
  async _after(time) {
    for (let span = 2 * this.period; time + span / 8 < this.newest?.time; span *= 8) {
      const [first] = await api.getResults(this.name, { since: time + 1, until: Math.ceil(time + span) });
      if (first) return first;
    }
    return undefined;
  }

  /** Earlier points of each track of a result, oldest first: settled ones, where there are, as live ones jump. */
  trails(result) {
    const there = result.tracks.filter(({ probability }) => probability >= 0.5);
    const points = new Map(there.map(({ label }) => [label, []]));
    for (const { time, tracks, settled } of this._holding(result.time - this.trail, result.time)?.items ?? []) {
      if (time <= result.time - this.trail || time > result.time) continue;
      if (this.late && !settled && time < result.time) continue;
      for (const track of tracks) points.get(track.label)?.push({ ...track, time });
    }
    return points;
  }
}
