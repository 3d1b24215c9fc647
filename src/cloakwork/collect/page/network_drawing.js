// The drawing of a network: a spring layout, the same each time; or, if it is large, a list of its heaviest places.

import { s, unit } from "./elements.js";
import { tint } from "./heat_layer.js";
import { sourceMark, sensorDot, truthMark } from "./map_symbols.js";

const MOST_NODES = 400;
const ROUNDS = 260;
const LISTED = 20;
const EDGE = 34;

export class NetworkDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.pairs = geometry.pairs ?? [];
    const count = this.pairs.reduce((most, [a, b]) => Math.max(most, a + 1, b + 1), 0);
    const given =
      geometry.labels ?? (geometry.places?.length ? geometry.places : Array.from({ length: count }, (_, k) => k));
    this.names = given.map((name) => String(name));
    this.place = new Map(this.names.map((name, k) => [name, k]));
    this.lengths = geometry.lengths ?? [];
    this.listed = this.names.length > MOST_NODES || !this.pairs.length;
    this.spots = this.listed ? [] : springs(this.names.length, this.pairs);
    this.span = Math.max(4, this.names.length);
    this.svg = s("svg", { class: "front", "aria-hidden": "true" });
    this.elements = [this.svg];
    this.ready = false;
  }

  where(source) {
    return `, at ${source.place}`;
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
    const dark = getComputedStyle(this.svg).colorScheme.includes("dark");
    this.svg.replaceChildren(...(this.listed ? this._bars(frame) : this._nodes(frame, dark)));
  }

  _px([x, y]) {
    const [side, top] = [2 * EDGE * unit(), EDGE * unit()];
    return [side + x * (this.size.width - 2 * side), top + y * (this.size.height - 2 * top)];
  }

  _index(source) {
    return this.place.get(String(source.place)) ?? this.place.get(String(source.at?.[0])) ?? -1;
  }

  _nodes(frame, dark) {
    const at = this.spots.map((spot) => this._px(spot));
    const size = Math.max(5, Math.min(17 * unit(), this.size.width / (6 * Math.sqrt(this.names.length))));
    const lines = this.pairs
      .map(([a, b]) => `M${at[a].map(Math.round).join(" ")}L${at[b].map(Math.round).join(" ")}`)
      .join("");
    const parts = [s("path", { class: "edge", d: lines })];
    const near = new Set(frame.sources.flatMap((source) => [...this._within(this._index(source), source.radius)]));
    for (const k of near)
      if (at[k]) parts.push(s("circle", { class: "halo", cx: at[k][0], cy: at[k][1], r: size + 6 }));
    at.forEach(([x, y], k) => {
      const share = frame.map && frame.layers.heat !== false ? frame.map[k] / frame.top : 0;
      const [r, g, b, a] = tint(share, dark);
      const warm = {
        cx: x,
        cy: y,
        r: size,
        fill: `rgb(${r.toFixed(0)} ${g.toFixed(0)} ${b.toFixed(0)} / ${(a / 255).toFixed(2)})`,
      };
      parts.push(s("circle", { class: "node", cx: x, cy: y, r: size }), s("circle", warm));
      if (this.names.length <= 80)
        parts.push(s("text", { class: "small middle", x, y: y + size + 14 * unit() }, this.names[k]));
    });
    parts.push(...this._sensors(frame, at, size));
    for (const one of frame.truth) if (at[this._index(one)]) parts.push(truthMark(at[this._index(one)], one.label));
    for (const source of frame.sources) {
      const spot = at[this._index(source)];
      if (spot) parts.push(sourceMark(spot, source, frame.label(source), [spot[0], spot[1] - size - 18 * unit()]));
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

  /** Nodes within a distance along the edges. */
  _within(start, radius) {
    const found = new Map(start < 0 ? [] : [[start, 0]]);
    for (let changed = true; changed;) {
      changed = false;
      this.pairs.forEach(([a, b], k) => {
        for (const [from, to] of [
          [a, b],
          [b, a],
        ]) {
          const far = (found.get(from) ?? Infinity) + (this.lengths[k] ?? 1);
          if (far <= radius + 1e-9 && far < (found.get(to) ?? Infinity)) {
            found.set(to, far);
            changed = true;
          }
        }
      });
    }
    return found.keys();
  }

  _bars(frame) {
    const map = frame.map ?? [];
    const heaviest = [...map.keys()]
      .sort((a, b) => map[b] - map[a])
      .slice(0, LISTED)
      .filter((k) => map[k] > 0);
    const high = (this.size.height - 30) / LISTED;
    const title = s(
      "text",
      { class: "small", x: 10, y: 16 },
      `The heaviest of ${this.names.length.toLocaleString("en-GB")} places`,
    );
    return [
      title,
      ...heaviest.flatMap((k, row) => {
        const y = 28 + row * high;
        const bar = {
          class: "bar",
          x: 150,
          y,
          height: high * 0.7,
          width: Math.max(1, ((this.size.width - 170) * map[k]) / frame.top),
        };
        return [s("rect", bar), s("text", { class: "small", x: 10, y: y + high * 0.6 }, this.names[k])];
      }),
    ];
  }
}

/** Positions from 0 to 1: edges pull, nodes push, from a circle at the start. */
function springs(count, pairs) {
  const at = Array.from({ length: count }, (_, k) => [
    Math.cos((2 * Math.PI * k) / count),
    Math.sin((2 * Math.PI * k) / count),
  ]);
  const ideal = 1.6 / Math.sqrt(Math.max(1, count));
  for (let round = 0; round < ROUNDS; round += 1) {
    const force = at.map(() => [0, 0]);
    const push = (a, b, size) => {
      const [dx, dy] = [at[a][0] - at[b][0], at[a][1] - at[b][1]];
      const far = Math.hypot(dx, dy) || 1e-3;
      const strength = size(far) / far;
      force[a][0] += dx * strength;
      force[a][1] += dy * strength;
      force[b][0] -= dx * strength;
      force[b][1] -= dy * strength;
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
