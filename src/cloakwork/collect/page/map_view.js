// A map of a site: fits its drawing to the page, moves marks, and describes itself.

import { h, prefersLessMotion, unit } from "./elements.js";
import { FloorDrawing } from "./floor_drawing.js";
import { topOf } from "./heat_layer.js";
import { LineDrawing } from "./line_drawing.js";
import { NetworkDrawing } from "./network_drawing.js";

const MOVE_MS = 700;
const MOST_WALKING = 6000; // places of a map that is painted at each step; on a larger one marks jump
const LEAST = 300;

/** The drawing for places with no, one or two coordinates; a site of bits has none. */
class NoDrawing {
  elements = [];
  ready = false;
  heightFor = () => 0;
  resize() {}
}

const drawingOf = ({ kind, places }) =>
  kind === "bits" ? NoDrawing : [NetworkDrawing, LineDrawing, FloorDrawing][places[0]?.length ?? 0];

/**
 * The marks of a result: its sources, and as doubts its tracks that are less likely than not. A followed source keeps
 * the number of its track; one of a frame alone has a letter, which says nothing about the next frame.
 */
export function marksOf({ sources, tracks }) {
  const [found, followed] = [sources, tracks ?? []].map((those) => new Map(those.map((one) => [one.label, one])));
  const doubts = [...followed.values()].filter(({ label }) => !found.has(label));
  return [
    ...[...sources]
      .sort((a, b) => a.label - b.label)
      .map((source, k) => ({ ...followed.get(source.label), ...source, id: source.label ?? String.fromCharCode(97 + k) })),
    ...doubts.map((one) => ({ ...one, id: one.label, doubt: true })),
  ];
}

export class MapView {
  constructor(holder, geometry) {
    this.holder = holder;
    this.drawing = new (drawingOf(geometry))(geometry);
    this.frame = { marks: [], trails: new Map(), truth: [], sensors: new Map(), layers: {}, label: () => "" };
    this.box = h("div", { class: "drawing", role: "img", "aria-label": "No map yet." }, ...this.drawing.elements);
    holder.replaceChildren(this.box);
    this.card = holder.closest("section");
    this._watch = new ResizeObserver(() => this._fit());
    for (const element of [holder, this.card]) this._watch.observe(element);
    this._ended = new AbortController();
    addEventListener("resize", () => this._fit(), { signal: this._ended.signal });
    this._fit();
  }

  close() {
    this._watch.disconnect();
    this._ended.abort();
    cancelAnimationFrame(this._running);
  }

  /** As wide as possible, but low enough to keep the timeline in view. */
  _fit() {
    const width = this.holder.clientWidth;
    const { card, holder } = this;
    const plans = card.querySelector(".plans"); // one or two figures
    const caption = holder.parentElement.offsetHeight - this.box.offsetHeight;
    const besides = card.offsetTop + card.offsetHeight - plans.offsetHeight + caption;
    const most = Math.max(LEAST * unit(), innerHeight - besides);
    const height = Math.round(Math.min(this.drawing.heightFor(width), most));
    const size = `${width} ${height}`;
    if (!width || size === this._size || !this.box.isConnected) return;
    this._size = size;
    this.box.style.height = `${height}px`;
    this.drawing.resize(width, height);
    this._draw(this.frame);
  }

  /** Draws again with the colours of the current theme. */
  repaint() {
    this._draw(this.frame);
  }

  /** Shows a frame; marks walk there unless the person prefers less motion. */
  show(frame, label) {
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
    const from = this._seen ?? this.frame;
    const to = { ...frame, top: frame.map ? topOf(frame.map) : 1 };
    this.frame = to;
    if (this._running && from.time === to.time) return; // the walk goes on, to the same places
    cancelAnimationFrame(this._running);
    this._running = null;
    const same = to.map?.length <= MOST_WALKING && from.map?.length === to.map.length;
    if (prefersLessMotion() || !same || from.time === to.time || document.hidden) {
      this._draw(to);
      return;
    }
    const start = performance.now();
    const routes = new Map(to.marks.map((mark) => [mark.id, this._route(from, mark)]));
    const step = (time) => {
      const share = Math.min(1, Math.max(0, (time - start) / MOVE_MS));
      this._running = share < 1 ? requestAnimationFrame(step) : null;
      this._draw(share < 1 ? between(from, this.frame, routes, share * share * (3 - 2 * share)) : this.frame);
    };
    this._running = requestAnimationFrame(step);
  }

  /** The way of a mark since the last frame; null for one that is new or not followed. */
  _route(from, { id, label, at }) {
    const old = from.marks.find((mark) => mark.id === id);
    if (!old || label === undefined || label === null || !at.length) return null;
    return this.drawing.floor?.way(old.at, at) ?? [old.at, at];
  }

  _draw(frame) {
    this._seen = frame;
    if (this.drawing.ready) this.drawing.draw(frame);
  }
}

function along(route, share) {
  const lengths = route.slice(1).map((to, k) => Math.hypot(...to.map((value, axis) => value - route[k][axis])));
  let left = share * lengths.reduce((sum, length) => sum + length, 0);
  const leg = lengths.findIndex((length) => (left -= length) <= 0);
  if (leg < 0 || lengths[leg] === 0) return route.at(-1);
  const rest = 1 + left / lengths[leg];
  return route[leg].map((value, axis) => value + (route[leg + 1][axis] - value) * rest);
}

function between(from, to, routes, share) {
  const mix = (a, b) => a + (b - a) * share;
  const marks = to.marks.map((mark) => {
    const route = routes.get(mark.id);
    return route ? { ...mark, at: along(route, share) } : mark;
  });
  const map = Float64Array.from(to.map, (value, k) => mix(from.map[k], value));
  return { ...to, marks, map, top: mix(from.top ?? to.top, to.top) };
}
