// The drawing of a network: a spring layout, or a list of its heaviest places where it is large.

import { isDark, s, unit } from "./elements.js";
import { tint } from "./heat_layer.js";
import { sourceMark, sensorDot, trailPaths, truthMark } from "./map_symbols.js";

const MOST_NODES = 400;
const ROUNDS = 260;
const LISTED = 20;
const EDGE = 34;

export class NetworkDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.pairs = geometry.pairs;
    const count = this.pairs.reduce((most, [a, b]) => Math.max(most, a + 1, b + 1), 0);
    this.names = geometry.labels ?? Array.from({ length: count }, (_, k) => String(k));
    this.place = new Map(this.names.map((name, k) => [name, k]));
    this.listed = this.names.length > MOST_NODES || !this.pairs.length;
    this.spots = this.listed ? [] : springs(this.names.length, this.pairs);
    this.svg = s("svg", { class: "front", "aria-hidden": "true" });
    this.elements = [this.svg];
    this.ready = false;
  }

  heightFor(width) {
    return width / 1.5;
  }

  resize(width, height) {
    this.size = { width, height };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.ready = true;
  }

  draw(frame) {
    this.svg.replaceChildren(...(this.listed ? this._bars(frame) : this._nodes(frame)));
  }

  _px([x, y]) {
    const [side, top] = [2 * EDGE * unit(), EDGE * unit()];
    return [side + x * (this.size.width - 2 * side), top + y * (this.size.height - 2 * top)];
  }

  _index(source) {
    return this.place.get(String(source.place)) ?? this.place.get(String(source.at?.[0])) ?? -1;
  }

  _nodes(frame) {
    const at = this.spots.map((spot) => this._px(spot));
    const size = Math.max(5, Math.min(17 * unit(), this.size.width / (6 * Math.sqrt(this.names.length))));
    const lines = this.pairs
      .map(([a, b]) => `M${at[a].map(Math.round).join(" ")}L${at[b].map(Math.round).join(" ")}`)
      .join("");
    const parts = [s("path", { class: "edge", d: lines })];
    const found = frame.marks.filter(({ doubt }) => !doubt);
    const near = new Set(found.flatMap(({ vicinity }) => vicinity));
    for (const k of near)
      if (at[k]) parts.push(s("circle", { class: "halo", cx: at[k][0], cy: at[k][1], r: size + 6 }));
    at.forEach(([x, y], k) => {
      const share = frame.map && frame.layers.heat !== false ? frame.map[k] / frame.top : 0;
      const [r, g, b, a] = tint(share, isDark()).map(Math.round);
      const circle = { cx: x, cy: y, r: size };
      parts.push(s("circle", { class: "node", ...circle }), s("circle", { fill: `rgb(${r} ${g} ${b} / ${a / 255})`, ...circle }));
      if (this.names.length <= 80)
        parts.push(s("text", { class: "small middle", x, y: y + size + 14 * unit() }, this.names[k]));
    });
    parts.push(...this._sensors(frame, at, size));
    for (const one of frame.truth) if (at[this._index(one)]) parts.push(truthMark(at[this._index(one)]));
    const way = (from, to) => this._way(this._index(from), this._index(to)).map((node) => at[node]);
    parts.push(...trailPaths(frame.trails, way, frame.time, frame.span));
    for (const mark of frame.marks) {
      const spot = at[this._index(mark)];
      const text = mark.doubt ? "" : frame.label(mark);
      if (spot) parts.push(sourceMark(spot, mark, text, [spot[0], spot[1] - size - 18 * unit()]));
    }
    return parts;
  }

  _sensors(frame, at, size) {
    if (frame.layers.sensors === false) return [];
    const known = this.geometry.sensors.map((sensor) => [sensor, at[this._index({ place: [sensor.at].flat()[0] })]]);
    return known
      .filter(([, spot]) => spot)
      .map(([sensor, [x, y]]) => sensorDot([x + size, y - size], sensor, frame.sensors.get(sensor.id)));
  }

  /** The nodes on the shortest way; none if it does not move. */
  _way(start, end) {
    const next = new Map([[end, null]]);
    for (const here of next.keys())
      for (const pair of this.pairs) {
        const there = pair[1 - pair.indexOf(here)];
        if (pair.includes(here) && !next.has(there)) next.set(there, here);
      }
    const nodes = [];
    if (start === end || !next.has(start)) return nodes;
    for (let node = start; node !== null; node = next.get(node)) nodes.push(node);
    return nodes;
  }

  _bars(frame) {
    const map = frame.map ?? [];
    const heaviest = [...map.keys()].filter((k) => map[k] > 0).sort((a, b) => map[b] - map[a]).slice(0, LISTED);
    const high = (this.size.height - 30) / LISTED;
    const text = `The heaviest of ${this.names.length.toLocaleString("en-GB")} places`;
    const bars = heaviest.flatMap((k, row) => {
      const y = 28 + row * high;
      const width = Math.max(1, ((this.size.width - 170) * map[k]) / frame.top);
      const bar = s("rect", { class: "there", x: 150, y, height: 0.7 * high, width });
      return [bar, s("text", { class: "small", x: 10, y: y + 0.6 * high }, this.names[k])];
    });
    return [s("text", { class: "small", x: 10, y: 16 }, text), ...bars];
  }
}

/** Positions from 0 to 1: edges pull, nodes push, from a circle at the start. */
function springs(count, pairs) {
  const at = Array.from({ length: count }, (_, k) => [Math.cos, Math.sin].map((turn) => turn((2 * Math.PI * k) / count)));
  const ideal = 1.6 / Math.sqrt(Math.max(1, count));
  for (let round = 0; round < ROUNDS; round += 1) {
    const force = at.map(() => [0, 0]);
    const push = (a, b, size) => {
      const apart = [0, 1].map((axis) => at[a][axis] - at[b][axis]);
      const far = Math.hypot(...apart) || 1e-3;
      apart.forEach((value, axis) => {
        force[a][axis] += (value * size(far)) / far;
        force[b][axis] -= (value * size(far)) / far;
      });
    };
    for (let a = 0; a < count; a += 1) for (let b = 0; b < a; b += 1) push(a, b, (far) => (ideal * ideal) / far);
    for (const [a, b] of pairs) push(a, b, (far) => (-far * far) / ideal);
    const most = 0.1 * (1 - round / ROUNDS) + 1e-3;
    at.forEach((spot, k) => {
      const far = Math.hypot(...force[k]) || 1;
      for (const axis of [0, 1]) spot[axis] += (force[k][axis] / far) * Math.min(far, most);
    });
  }
  for (const axis of [0, 1]) {
    const values = at.map((spot) => spot[axis]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    for (const spot of at) spot[axis] = (spot[axis] - low) / (high - low || 1);
  }
  return at;
}
