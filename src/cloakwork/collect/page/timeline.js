// The timeline: a lane for each room with its state, hour ticks, and a slider to go back.

import { $, fill, h, s, setText, setVisible } from "./elements.js";
import { day, hour } from "./formats.js";

const TICKS_MS = [60, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800].map((s) => 1000 * s);
const MAX_TICKS = 6;
const PAGE = 10; // frames that Page Up goes back
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -PAGE, PageDown: PAGE };

export class Timeline {
  /** `onShow` is called with "live" or a time, `onStep` with a number of frames. */
  constructor({ onShow, onStep }) {
    Object.assign(this, { onShow, onStep, from: 0, to: 1 });
    this.slider = $("slider");
    this.slider.addEventListener("keydown", (event) => this._key(event));
    for (const kind of ["pointerdown", "pointermove"]) this.slider.addEventListener(kind, (event) => this._point(event));
  }

  _key(event) {
    const by = KEYS[event.key];
    if (by) this.onStep(by);
    else if (event.key === "Home") this.onShow(this.from);
    else if (event.key === "End") this.onShow("live");
    else return;
    event.preventDefault();
  }

  _point(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    if (event.type === "pointerdown" && event.isTrusted) this.slider.setPointerCapture(event.pointerId);
    const { left, width } = this.slider.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    this.onShow(share > 1 - 4 / width ? "live" : Math.round(this.from + share * (this.to - this.from))); // the last pixels are now
  }

  /** Draws the lanes: { id, label, states } each, a state for each step. */
  draw({ since, until, step_ms: step }, lanes, period) {
    Object.assign(this, { from: since, to: Math.max(until, since + 1) });
    const reach = Math.ceil((1.5 * period) / step);
    const steps = Math.max(1, (this.to - since) / step);
    const rows = lanes.map(({ id, label, states }) => {
      const parts = runs(spread(states, reach)).map(([x, width, state]) => s("rect", { class: state, x, width, y: 0, height: 1 }));
      const drawing = s("svg", { viewBox: `0 0 ${steps} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...parts);
      return h("li", { "data-id": id }, h("span", { class: "name" }, label), h("span", { class: "lane" }, drawing));
    });
    fill($("lanes"), rows);
    fill($("ticks"), this._ticks());
    setVisible($("timeline"), true);
  }

  _ticks() {
    const length = this.to - this.from;
    const step = TICKS_MS.find((one) => length / one <= MAX_TICKS) ?? TICKS_MS.at(-1);
    const midnight = new Date(this.from).setHours(0, 0, 0, 0);
    const found = [];
    for (let time = midnight; time < this.to; time += step) {
      const share = (time - this.from) / length;
      if (share >= 0 && share < 0.8) found.push(tick(share, step < TICKS_MS.at(-3) ? hour(time) : day(time)));
    }
    return [...found, tick(1, "now")];
  }

  /** Marks the time that the page shows; null where there is none. */
  show(time, text, live) {
    const ends = { valuemin: this.from, valuemax: this.to, valuenow: Math.min(Math.max(time ?? this.to, this.from), this.to) };
    for (const [name, value] of Object.entries(ends)) this.slider.setAttribute(`aria-${name}`, String(Math.round(value)));
    this.slider.setAttribute("aria-valuetext", text);
    const share = live || time === null ? 1 : (time - this.from) / (this.to - this.from);
    this.slider.firstElementChild.style.left = `${100 * Math.min(1, Math.max(0, share))}%`;
  }

  clear(text) {
    setVisible($("timeline"), false);
    setText($("no-lanes"), text);
  }
}

function tick(share, text) {
  const at = h("span", { class: share > 0.9 ? "last" : null }, text);
  at.style.left = `${100 * share}%`;
  return at;
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
