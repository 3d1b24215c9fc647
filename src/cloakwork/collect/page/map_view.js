// A map of a site: fits the drawing to the page, animates marks from frame to frame, and describes itself.

import { h, prefersLessMotion, unit } from "./elements.js";
import { topOf } from "./heat_layer.js";
import { LineDrawing } from "./line_drawing.js";
import { NetworkDrawing } from "./network_drawing.js";
import { FloorDrawing } from "./floor_drawing.js";

const MOVE_MS = 700;
const BESIDES = 366; // height of what should stay in view with the map: header, key and time
const LEAST = 320;

function drawingOf(geometry) {
  const flat = Array.isArray(geometry.places?.[0]) && geometry.places[0].length === 2;
  if (geometry.kind === "floorplan" || geometry.kind === "plane" || flat) return FloorDrawing;
  const coordinates =
    typeof (geometry.places?.[0]?.[0] ?? geometry.places?.[0]) === "number" && geometry.kind !== "graph";
  return coordinates ? LineDrawing : NetworkDrawing;
}

/** Gives each source the number of the nearest mark before it; a number identifies no one. */
export function numberMarks(before, sources, space) {
  const taken = new Set();
  const pairs = [];
  sources.forEach((source, k) => {
    for (const old of before) pairs.push([apart(source, old, space), k, old.id]);
  });
  const ids = new Array(sources.length).fill(null);
  for (const [far, k, id] of pairs.sort((a, b) => a[0] - b[0])) {
    if (ids[k] !== null || taken.has(id) || far > space / 2) continue;
    ids[k] = id;
    taken.add(id);
  }
  let free = 1;
  return sources.map((source, k) => {
    while (ids[k] === null && taken.has(free)) free += 1;
    const id = ids[k] ?? free;
    taken.add(id);
    return { ...source, id };
  });
}

function apart(a, b, space) {
  if (!a.at.length || !b.at.length) return a.place === b.place ? 0 : space / 4;
  return Math.hypot(...a.at.map((value, axis) => value - b.at[axis]));
}

/** The drawing of one site in one holder. */
export class MapView {
  constructor(holder, geometry) {
    this.holder = holder;
    this.geometry = geometry;
    this.drawing = new (drawingOf(geometry))(geometry);
    this.frame = { sources: [], map: null, truth: [], sensors: new Map(), layers: {}, label: () => "" };
    this.box = h("div", { class: "drawing", role: "img", "aria-label": "No map yet." }, ...this.drawing.elements);
    holder.replaceChildren(this.box);
    this._watch = new ResizeObserver(() => this._fit());
    this._watch.observe(holder);
    this._ended = new AbortController();
    addEventListener("resize", () => this._fit(), { signal: this._ended.signal });
    this._fit();
  }

  close() {
    this._watch.disconnect();
    this._ended.abort();
    cancelAnimationFrame(this._running);
  }

  /** As wide as possible, but low enough to keep the time slider in view. */
  _fit() {
    const width = this.holder.clientWidth;
    const most = Math.max(LEAST, innerHeight / unit() - BESIDES) * unit();
    const height = Math.min(this.drawing.heightFor(width), most);
    const size = `${width} ${height}`;
    if (!width || size === this._size || !this.box.isConnected) return;
    this._size = size;
    this.box.style.height = `${height}px`;
    this.drawing.resize(width, height);
    this._draw(this.frame);
  }

  /** A length that is typical of the space. */
  get span() {
    return this.drawing.span;
  }

  /** Where a source is, such as ", in the left room"; empty if unknown. */
  where(source) {
    return this.drawing.where(source);
  }

  /** Whether a point lies in the vicinity of a source as it is drawn. */
  holds(source, at) {
    if (this.drawing.holds) return this.drawing.holds(source, at);
    return Math.hypot(...at.map((value, axis) => value - source.at[axis])) <= source.radius;
  }

  /** Draws again with the colours of the current theme. */
  repaint() {
    this._draw(this.frame);
  }

  /** Shows a frame; marks glide to their new positions unless the person prefers less motion. */
  show(frame, label) {
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
    const from = this._seen ?? this.frame;
    const to = { ...frame, top: frame.map ? topOf(frame.map) : 1 };
    this.frame = to;
    cancelAnimationFrame(this._running);
    const same = from.map && to.map && from.map.length === to.map.length;
    if (prefersLessMotion() || !same || from.time === to.time || document.hidden) {
      this._draw(to);
      return;
    }
    const start = performance.now();
    const step = (time) => {
      const share = Math.min(1, Math.max(0, (time - start) / MOVE_MS));
      this._draw(share < 1 ? between(from, to, share * share * (3 - 2 * share)) : to);
      if (share < 1) this._running = requestAnimationFrame(step);
    };
    this._running = requestAnimationFrame(step);
  }

  _draw(frame) {
    this._seen = frame;
    if (this.drawing.ready) this.drawing.draw(frame);
  }
}

function between(from, to, share) {
  const mix = (a, b) => a + (b - a) * share;
  const sources = to.sources.map((source) => {
    const old = from.sources.find((one) => one.id === source.id);
    if (!old || !source.at.length) return source;
    return {
      ...source,
      at: source.at.map((value, k) => mix(old.at[k], value)),
      radius: mix(old.radius, source.radius),
    };
  });
  const map = Float64Array.from(to.map, (value, k) => mix(from.map[k], value));
  return { ...to, sources, map, top: mix(from.top ?? to.top, to.top) };
}
