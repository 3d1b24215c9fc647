// The time slider: the moment shown, and playback of the history.

import { $, onResize, s, setText } from "./elements.js";
import { ago, clock, countText, moment, number } from "./texts.js";

const RANGES = [
  ["5 minutes", 300],
  ["30 minutes", 1800],
  ["1 hour", 3600],
  ["6 hours", 21_600],
  ["1 day", 86_400],
  ["1 week", 604_800],
];
const FEWEST = 40; // frames that the default range shows, if possible

/** The expected number of sources of a result. */
export function expected(result) {
  return result.counts ? result.counts.reduce((sum, p, k) => sum + k * p, 0) : result.sources.length;
}

export class TimeSlider {
  /** `onShow(time)` is called with the moment to show, null for live; `onRange` when the range changes. */
  constructor({ onShow, onRange, now }) {
    Object.assign(this, { onShow, onRange, now, results: [], at: null, playing: false, period: 60_000 });
    this.slider = $("slider");
    this.slider.addEventListener("input", () => this._slid());
    $("back").addEventListener("click", () => this.step(-1));
    $("forth").addEventListener("click", () => this.step(1));
    $("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    $("go-live").addEventListener("click", () => this.goLive());
    $("range").addEventListener("change", () => this.onRange());
    onResize($("strip"), () => this._strip());
  }

  /** Offers the ranges that suit the time between two frames. */
  prepare(period) {
    this.period = period;
    const fitting = RANGES.filter(
      ([, seconds]) => (1000 * seconds) / period >= 5 && (1000 * seconds) / period <= 20_000,
    );
    const offered = fitting.length ? fitting : [RANGES.at(-1)];
    const best = offered.find(([, seconds]) => (1000 * seconds) / period >= FEWEST) ?? offered.at(-1);
    $("range").replaceChildren(
      ...offered.map(([name, seconds]) => new Option(`last ${name}`, seconds, false, seconds === best[1])),
    );
    this.results = [];
    this.at = null;
    this.pause();
  }

  get range() {
    return 1000 * Number($("range").value || 3600);
  }

  get live() {
    return this.at === null;
  }

  set(results) {
    this.results = results;
    this._draw();
  }

  /** Adds a new result. A person who looks at the past stays there. */
  add(result) {
    if (this.results.some((one) => one.time === result.time)) return;
    const oldest = this.at === null ? this.now() - this.range : Math.min(this.at, this.now() - this.range);
    this.results = [...this.results, result].sort((a, b) => a.time - b.time).filter((one) => one.time >= oldest);
    this._draw();
  }

  index() {
    if (this.at === null) return this.results.length - 1;
    let best = 0;
    this.results.forEach((one, k) => {
      if (Math.abs(one.time - this.at) < Math.abs(this.results[best].time - this.at)) best = k;
    });
    return best;
  }

  _slid() {
    this.pause();
    this.goTo(Number(this.slider.value));
  }

  goTo(index) {
    const last = this.results.length - 1;
    if (index >= last) {
      this.goLive();
      return;
    }
    this._stand(Math.max(0, index));
    this.onShow(this.at);
  }

  step(by) {
    this.pause();
    if (this.results.length) this.goTo(this.index() + by);
  }

  goLive() {
    this.pause();
    this.at = null;
    this._draw();
    this.onShow(null);
  }

  async play() {
    if (this.results.length < 2) return;
    this.playing = true;
    if (this.live) this._stand(0);
    this._draw();
    while (this.playing) {
      const wait = new Promise((done) => setTimeout(done, 1000 / Number($("speed").value)));
      await Promise.all([wait, this.onShow(this.at)]);
      if (!this.playing) return;
      if (this.index() >= this.results.length - 2) this.goLive();
      else this._stand(this.index() + 1);
    }
  }

  _stand(index) {
    this.at = this.results[index].time;
    this._draw();
  }

  pause() {
    this.playing = false;
    this._button();
  }

  _button() {
    $("play").setAttribute("aria-label", this.playing ? "Pause" : "Play the history");
    $("play").dataset.playing = String(this.playing);
  }

  _draw() {
    const { results, slider } = this;
    const index = this.index();
    slider.max = String(Math.max(0, results.length - 1));
    slider.value = String(Math.max(0, index));
    for (const id of ["slider", "back", "forth", "play"]) $(id).disabled = results.length < 2;
    $("forth").disabled ||= this.live;
    $("go-live").setAttribute("aria-pressed", String(this.live));
    const shown = results[index];
    const now = this.now();
    const text = shown
      ? `${moment(shown.time, now)}, ${ago(shown.time, now)}. ${countText(shown)}`
      : "No history yet";
    slider.setAttribute("aria-valuetext", `${text}${this.live && shown ? " Live." : ""}`);
    setText($("first"), results.length ? moment(results[0].time, now) : "");
    setText($("last"), results.length > 1 ? moment(results.at(-1).time, now) : "");
    this._button();
    this._strip();
  }

  /** Draws the bars once for many changes. */
  _strip() {
    cancelAnimationFrame(this._soon);
    this._soon = requestAnimationFrame(() => this._bars());
  }

  /** Bars above the slider: the expected number of sources of each frame. */
  _bars() {
    const strip = $("strip");
    const [width, height] = [strip.clientWidth, strip.clientHeight];
    const { results } = this;
    if (!width || !results.length) {
      strip.replaceChildren();
      return;
    }
    const bins = Math.min(results.length, Math.max(1, Math.floor(width / 4)));
    const most = Math.max(1, ...results.map(expected));
    const at = this.index();
    const bars = [];
    for (let bin = 0; bin < bins; bin += 1) {
      const [from, to] = [Math.floor((bin * results.length) / bins), Math.floor(((bin + 1) * results.length) / bins)];
      const value = Math.max(...results.slice(from, to).map(expected));
      const tall = Math.max(1.5, (value / most) * height);
      const x = bins === 1 ? 0 : (from / Math.max(1, results.length - 1)) * width;
      const wide = Math.max(1, Math.min(10, (width / bins) * 0.7));
      const here = at >= from && at < to ? " here" : "";
      bars.push(s("rect", { class: `bar${here}`, x: x - wide / 2, y: height - tall, width: wide, height: tall }));
    }
    strip.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}` }, ...bars));
    strip.title = `Expected sources, at most ${number(most)}; ${clock(results[0].time)} to ${clock(results.at(-1).time)}`;
  }
}
