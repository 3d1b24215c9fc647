// The drawing of a line: expected sources as an area, vicinities as bars, sensors as dots.

import { s, unit } from "./elements.js";
import { labelSize, sourceMark, sensorDot, trailPaths, truthMark, vicinityBar } from "./map_symbols.js";
import { number, roundDown } from "./formats.js";

const SIDE = 26;
const FOOT = 60;
const HEAD = 84; // three rows of labels
const [ROOMY, BARE_HEAD] = [520, 24]; // width for labels, and the head without them
const LEAST = 200;

export class LineDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.xs = geometry.places.map(([x]) => x);
    const ends = this.xs.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [0, geometry.length ?? 0]);
    [this.low, this.high] = ends;
    this.span = this.high - this.low || 1;
    this.svg = s("svg", { class: "front", "aria-hidden": "true" });
    this.elements = [this.svg];
    this.ready = false;
  }

  heightFor(width) {
    return Math.max(width / 2.4, LEAST * unit());
  }

  resize(width, height) {
    this.size = { width, height };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const u = unit();
    const roomy = width >= ROOMY * u;
    Object.assign(this, { u, roomy, side: SIDE * u, head: (roomy ? HEAD : BARE_HEAD) * u, base: height - FOOT * u });
    this.ready = true;
  }

  x(value) {
    return this.side + ((value - this.low) / this.span) * (this.size.width - 2 * this.side);
  }

  draw(frame) {
    const { side, base, size } = this;
    const [top, width] = [0.3 * this.head, size.width - 2 * side];
    const parts = [s("rect", { class: "floor", x: side, y: top, width, height: base - top })];
    if (frame.map && frame.layers.heat !== false) parts.push(this._area(frame));
    parts.push(s("path", { class: "wall", "stroke-width": 3, d: `M${side} ${base}h${width}` }), ...this._axis());
    if (frame.layers.sensors !== false) {
      for (const sensor of this.geometry.sensors) {
        const at = [sensor.at].flat()[0];
        if (Number.isFinite(at))
          parts.push(sensorDot([this.x(at), base + 15 * this.u], sensor, frame.sensors.get(sensor.id)));
      }
    }
    for (const one of frame.truth) parts.push(truthMark([this.x(one.at[0]), base]));
    const way = ({ at: [from] }, { at: [to] }) =>
      from === to ? [] : [from, to].map((value) => [this.x(value), base]);
    parts.push(...trailPaths(frame.trails, way, frame.time, frame.span));
    for (const mark of frame.marks) if (!mark.doubt) parts.push(this._bar(mark));
    parts.push(...this._marks(frame));
    this.svg.replaceChildren(...parts);
  }

  _bar({ at: [middle], radius }) {
    const within = (value) => this.x(Math.min(Math.max(value, this.low), this.high));
    return vicinityBar(within(middle - radius), within(middle + radius), this.base);
  }

  _area(frame) {
    const tall = this.base - this.head;
    const points = this.xs.map(
      (x, k) => `${this.x(x).toFixed(1)} ${(this.base - (tall * frame.map[k]) / frame.top).toFixed(1)}`,
    );
    return s("path", {
      class: "area",
      d: `M${this.x(this.xs[0])} ${this.base}L${points.join("L")}L${this.x(this.xs.at(-1))} ${this.base}z`,
    });
  }

  _axis() {
    const step = roundDown((this.span * 180 * this.u) / this.size.width);
    const parts = [];
    for (let value = Math.ceil(this.low / step) * step; step && value <= this.high + step / 1e6; value += step) {
      const text = { x: this.x(value), y: this.base + 42 * this.u, class: "small middle" };
      parts.push(s("text", text, `${number(Math.abs(value) < step / 1e6 ? 0 : value, 3)} m`));
    }
    return parts;
  }

  _marks(frame) {
    let last = -Infinity;
    let level = 0;
    return [...frame.marks]
      .sort((a, b) => a.at[0] - b.at[0])
      .map((source) => {
        const text = this.roomy && !source.doubt ? frame.label(source) : "";
        const { wide, high } = labelSize(text);
        const x = this.x(source.at[0]);
        const middle = Math.min(Math.max(x, wide / 2 + 4), this.size.width - wide / 2 - 4);
        level = middle - wide / 2 < last ? (level + 1) % 3 : 0;
        last = middle + wide / 2;
        return sourceMark([x, this.base], source, text, [middle, (0.7 + 1.15 * level) * high]);
      });
  }
}
