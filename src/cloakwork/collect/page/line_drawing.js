// The drawing of a line: expected sources as an area, marks and sensors as dots.

import { s, unit } from "./elements.js";
import { number, roundDown } from "./formats.js";
import { sensorDot, sourceMarks, trailDots, truthMark } from "./map_symbols.js";

const [SIDE, FOOT, HEAD, LEAST] = [26, 60, 24, 200];

export class LineDrawing {
  constructor({ places, length, sensors }) {
    this.xs = places.map(([x]) => x);
    [this.low, this.high] = [Math.min(0, ...this.xs.slice(0, 1)), Math.max(length ?? 0, this.xs.at(-1))];
    this.at = new Map(sensors.map(({ id, at }) => [id, [at].flat()[0]]));
    this.svg = s("svg", { "aria-hidden": "true" });
    this.elements = [this.svg];
  }

  heightFor(width) {
    return Math.max(width / 2.4, LEAST * unit());
  }

  resize(width, height) {
    Object.assign(this, { width, height, base: height - FOOT * unit() });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  x(value) {
    const side = SIDE * unit();
    return side + ((value - this.low) / (this.high - this.low || 1)) * (this.width - 2 * side);
  }

  draw({ map, top, marks, trails, truth, sensors, numbers }) {
    const { base } = this;
    const [left, right] = [this.x(this.low), this.x(this.high)];
    const known = sensors.filter(({ id }) => Number.isFinite(this.at.get(id)));
    this.svg.replaceChildren(
      s("rect", { class: "floor", x: left, y: 8, width: right - left, height: base - 8 }),
      ...(map ? [this._area(map, top)] : []),
      s("path", { class: "wall", "stroke-width": 3, d: `M${left} ${base}H${right}` }),
      ...this._axis(),
      ...known.map((one) => sensorDot([this.x(this.at.get(one.id)), base + 15 * unit()], one)),
      ...trailDots(trails, ({ at }) => [this.x(at[0]), base]),
      ...truth.map(({ at }) => truthMark([this.x(at[0]), base])),
      ...sourceMarks(marks, ({ at }) => [this.x(at[0]), base], numbers),
    );
  }

  _area(map, top) {
    const tall = this.base - HEAD * unit();
    const points = this.xs.map((x, k) => `${this.x(x).toFixed(1)} ${(this.base - (tall * map[k]) / top).toFixed(1)}`);
    return s("path", { class: "area", d: `M${this.x(this.xs[0])} ${this.base}L${points.join("L")}L${this.x(this.xs.at(-1))} ${this.base}z` });
  }

  _axis() {
    const step = roundDown(((this.high - this.low || 1) * 180 * unit()) / this.width);
    const parts = [];
    for (let value = Math.ceil(this.low / step) * step; value <= this.high + step / 1e6; value += step) {
      const spot = { x: this.x(value), y: this.base + 42 * unit(), class: "small middle" };
      parts.push(s("text", spot, `${number(Math.abs(value) < step / 1e6 ? 0 : value, 3)} m`));
    }
    return parts;
  }
}
