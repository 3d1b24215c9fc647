// The timeline: a lane for each room with the probability of someone there, and a slider.

import { $, h, s, setText, setVisible, shape } from "./elements.js";
import { moment } from "./formats.js";

const RANGES = [
  ["5 minutes", 300],
  ["30 minutes", 1800],
  ["hour", 3600],
  ["6 hours", 21_600],
  ["day", 86_400],
  ["week", 604_800],
  ["month", 2_678_400],
];
const ALL = "all";
const FEWEST = 40; // frames that the default range shows, if possible
const SHADES = 10;
const PLAY_MS = 30_000; // to play the whole timeline
const [FASTEST_MS, SLOWEST_MS] = [70, 500];
const LONG_STAY = 0.05; // share of the timeline that a stay needs to show its number
const PAGE = 10; // frames that PageUp goes back
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -PAGE, PageDown: PAGE };

export class Timeline {
  /**
   * `onShow(moment)` is called with "live", "settled" or a time; `onStep(by)` shows the frame so many frames later
   * and gives whether there is one; `onRange()` says that other lanes are needed.
   */
  constructor({ onShow, onStep, onRange, now }) {
    Object.assign(this, { onShow, onStep, onRange, now, playing: false, from: 0, to: 1 });
    this.slider = $("slider");
    this.slider.addEventListener("keydown", (event) => this._key(event));
    for (const kind of ["pointerdown", "pointermove"])
      this.slider.addEventListener(kind, (event) => this._point(event));
    $("back").addEventListener("click", () => this.step(-1));
    $("forth").addEventListener("click", () => this.step(1));
    $("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    for (const mode of ["live", "settled"]) $(`go-${mode}`).addEventListener("click", () => this.go(mode));
    $("range").addEventListener("change", () => this.onRange());
  }

  /** Begins a site: offers the ranges that suit the time between two frames. */
  prepare(period, settles) {
    const offered = RANGES.filter(([, seconds]) => (1000 * seconds) / period >= 5);
    const best = offered.find(([, seconds]) => (1000 * seconds) / period >= FEWEST) ?? [ALL, ALL];
    const options = offered.map(([name, seconds]) => new Option(`last ${name}`, seconds));
    $("range").replaceChildren(...options, new Option("all that is stored", ALL));
    $("range").value = best[1];
    setVisible($("go-settled"), settles);
    Object.assign(this, { period, mode: "live", at: null, from: 0, to: 1, counts: null });
    this.pause();
    this.show(null, "No history yet");
    $("lanes").replaceChildren();
    this.rows = new Map();
  }

  /** The length of the range in milliseconds; null for everything that is stored. */
  get range() {
    return $("range").value === ALL ? null : 1000 * Number($("range").value);
  }

  get live() {
    return this.mode === "live";
  }

  go(mode) {
    this.pause();
    this.mode = mode;
    return this.onShow(mode);
  }

  async step(by) {
    this.pause();
    await this._step(by);
  }

  /** Goes some frames on; past the newest one, the page is live again. */
  async _step(by) {
    if (this.at === null) return;
    this.mode = "past";
    if (!(await this.onStep(by)) && by > 0) await this.go("live");
  }

  _key(event) {
    const by = KEYS[event.key];
    if (by) this.step(by);
    else if (event.key === "Home") this.go(this.from);
    else if (event.key === "End") this.go("live");
    else return;
    event.preventDefault();
  }

  _point(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    if (event.type === "pointerdown") this.slider.setPointerCapture(event.pointerId);
    const { left, width } = this.slider.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    const last = share > 1 - 4 / width; // the last pixels are now
    this.go(last ? "live" : Math.round(this.from + share * (this.to - this.from)));
  }

  async play() {
    this.playing = true;
    this._button();
    if (this.live) {
      this.mode = this.from;
      await this.onShow(this.from);
    }
    const frames = (this.to - this.from) / this.period;
    const pace = Math.min(Math.max(PLAY_MS / frames, FASTEST_MS), SLOWEST_MS);
    while (this.playing) {
      const wait = new Promise((done) => setTimeout(done, pace));
      await Promise.all([wait, this._step(1)]);
    }
  }

  pause() {
    this.playing = false;
    this._button();
  }

  _button() {
    $("play").setAttribute("aria-label", this.playing ? "Pause" : "Play the history");
    $("play").dataset.playing = String(this.playing);
  }

  /** Marks the time that the page shows; null where there is none. */
  show(time, text) {
    this.at = time;
    const { slider } = this;
    for (const id of ["back", "forth", "play"]) $(id).disabled = time === null;
    $("forth").disabled ||= this.live;
    slider.setAttribute("aria-disabled", String(time === null));
    for (const mode of ["live", "settled"]) $(`go-${mode}`).setAttribute("aria-pressed", String(this.mode === mode));
    const ends = { valuemin: this.from, valuemax: this.to, valuenow: time ?? this.to };
    for (const [name, value] of Object.entries(ends)) slider.setAttribute(`aria-${name}`, String(Math.round(value)));
    slider.setAttribute("aria-valuetext", text);
    const share = this.live || time === null ? 1 : (time - this.from) / (this.to - this.from);
    slider.firstElementChild.style.left = `${100 * Math.min(1, Math.max(0, share))}%`;
  }

  /** Draws the lanes, with the numbers of tracks that stayed long; `zoneOf(point)` is a zone's id. */
  draw({ since, until, step_ms: step, zones, counts }, tracks, zoneOf) {
    Object.assign(this, { from: since, to: Math.max(until, since + 1), step_ms: step, counts });
    const share = (time) => Math.min(1, Math.max(0, (time - since) / (this.to - since)));
    const steps = Math.max(1, (until - since) / step);
    const reach = Math.ceil((1.5 * this.period) / step);
    const stays = tracks
      .flatMap((track) => staysOf(track, zoneOf))
      .filter(({ from, to }) => share(to) - share(from) > LONG_STAY);
    const fill = (id, parts, marks) => {
      const drawing = s("svg", { viewBox: `0 0 ${steps} 1`, preserveAspectRatio: "none" }, ...parts);
      this._row(id).querySelector(".lane").replaceChildren(drawing, ...marks);
    };
    if (counts) fill("", bars(spread(counts, reach)), []);
    for (const { id, probability } of zones) {
      const here = stays.filter(({ zone }) => zone === id);
      const marks = here.map(({ label, from }) => {
        const mark = h("span", { class: "who" }, String(label));
        mark.style.left = `${100 * share(from)}%`;
        return mark;
      });
      fill(id, shades(spread(probability, reach)), marks);
    }
    setText($("first"), moment(since, this.now()));
    setText($("last"), moment(until, this.now()));
  }

  has(time) {
    return this.counts?.[Math.floor((time - this.from) / this.step_ms)] != null;
  }

  /** The row of a zone, or of the count, whose id is empty. */
  _row(id) {
    if (this.rows.has(id)) return this.rows.get(id);
    const lane = h("span", { class: "lane", "aria-hidden": "true" });
    const name = h("span", { class: "name" }, shape(), h("strong"));
    const row = h("li", { "data-id": id }, name, lane, h("span", { class: "say" }));
    $("lanes").append(row);
    this.rows.set(id, row);
    return row;
  }

  /** Names each row, { id, label, text, there }, and says what is known of it at the moment shown. */
  say(rows) {
    for (const { id, label, text, there } of rows) {
      const row = this._row(id);
      setText(row.querySelector("strong"), label);
      setText(row.querySelector(".say"), text);
      row.dataset.there = String(there);
    }
  }
}

/** Values with gaps filled that are no longer than between two frames. */
function spread(values, reach) {
  let left = 0;
  return values.map((value, k, all) => {
    left = value === null ? left - 1 : reach;
    return left > 0 ? all.slice(Math.max(0, k - reach), k + 1).findLast((one) => one !== null) : null;
  });
}

/** Runs of equal values as [first, length, value]; those without a value left out. */
function runs(values) {
  const found = [];
  values.forEach((value, k) => {
    const last = found.at(-1);
    if (value === null) return;
    if (last && last[2] === value && last[0] + last[1] === k) last[1] += 1;
    else found.push([k, 1, value]);
  });
  return found;
}

/** Probabilities as shades; below a half pale, so that a glance sees where someone was. */
function shades(probabilities) {
  const levels = probabilities.map((p) => (p === null ? null : Math.round(SHADES * p) / SHADES));
  return runs(levels).map(([x, width, p]) => {
    const opacity = p < 0.5 ? 0.08 + 0.2 * p : 2 * p - 1 + 0.6 * (1 - p);
    return s("rect", { class: "there", x, width, y: 0, height: 1, "fill-opacity": opacity.toFixed(2) });
  });
}

function bars(counts) {
  const most = Math.max(1, ...counts);
  return runs(counts).map(([x, width, value]) => {
    const height = Math.max(0.06, value / most);
    return s("rect", { class: "count", x, width, y: 1 - height, height });
  });
}

/** The stays of a track, each in one zone; points less likely than not say nothing. */
function staysOf({ label, points }, zoneOf) {
  const stays = [];
  for (const point of points) {
    if (point.probability < 0.5) continue;
    const zone = zoneOf(point);
    const last = stays.at(-1);
    if (last && last.zone === zone) last.to = point.time;
    else stays.push({ label, zone, from: point.time, to: point.time });
  }
  return stays.filter(({ zone }) => zone);
}
