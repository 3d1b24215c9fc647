// The drawing of a floor plan or a plane: colour on a canvas, rooms, walls and marks as SVG.

import { h, isDark, s, unit } from "./elements.js";
import { FloorGrid } from "./floor_grid.js";
import { number, roundDown } from "./formats.js";
import { paint } from "./heat_layer.js";
import { sensorDot, sourceMarks, trailDots, truthMark } from "./map_symbols.js";

const MARGIN = 10; // room for the thickness of walls
const FOOT = 26; // room for the scale

export class FloorDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.floor = new FloorGrid(geometry);
    this.at = new Map(geometry.sensors.map(({ id, at }) => [id, at]));
    this.canvas = h("canvas", { "aria-hidden": "true" });
    const svg = () => s("svg", { "aria-hidden": "true" });
    [this.back, this.tints, this.front, this.dots, this.above] = [svg(), svg(), svg(), svg(), svg()]; // what changes is apart
    this.elements = [this.back, this.tints, this.canvas, this.dots, this.front, this.above];
  }

  heightFor(width) {
    const u = unit();
    return ((width - 2 * MARGIN * u) * this.floor.height) / this.floor.width + (MARGIN + FOOT) * u;
  }

  resize(width, height) {
    const { floor } = this;
    const [margin, foot] = [MARGIN * unit(), FOOT * unit()];
    this.scale = Math.max(1, Math.min((width - 2 * margin) / floor.width, (height - margin - foot) / floor.height));
    this.x0 = (width - this.scale * floor.width) / 2;
    this.y0 = (height - foot + margin - this.scale * floor.height) / 2;
    const [left, top] = this.px([floor.left, floor.bottom + floor.rows * floor.dy]);
    const box = { left, top, width: floor.columns * floor.dx * this.scale, height: floor.rows * floor.dy * this.scale };
    for (const [name, value] of Object.entries(box)) this.canvas.style[name] = `${value}px`;
    for (const svg of this.elements) if (svg !== this.canvas) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawn = null;
    this._fixed();
  }

  /** Pixels of a point in metres; y grows upwards on the floor and downwards on a screen. */
  px([x, y]) {
    return [this.x0 + x * this.scale, this.y0 + (this.floor.height - y) * this.scale];
  }

  _line(segments, attributes) {
    const text = (point) => this.px(point).map((v) => v.toFixed(1)).join(" ");
    return s("path", { d: segments.map(([a, b]) => `M${text(a)}L${text(b)}`).join(""), ...attributes });
  }

  _fixed() {
    const { floor, geometry } = this;
    this.back.replaceChildren(s("path", { class: "floor", d: this._cells(floor.grid.keys()) }));
    const shape = ({ places }) => this._cells(places.map((place) => floor.cell(floor.places[place])));
    this.rooms = new Map(geometry.zones.map((zone) => [zone.id, s("path", { class: "tint", d: shape(zone) })]));
    this.tints.replaceChildren(...this.rooms.values());
    const weight = Math.max(2, Math.min(6 * unit(), 0.12 * this.scale));
    this.front.replaceChildren(
      this._line(floor.walls, { class: "wall", "stroke-width": weight }),
      this._line(geometry.doors, { class: "gap", "stroke-width": weight + 1 }),
      ...geometry.zones.map((zone) => this._name(zone)),
      this._scale(),
    );
  }

  /** The name of a room, in its lowest row that is wide enough. */
  _name({ label, places }) {
    const { floor } = this;
    const wide = (6.4 * label.length + 12) * unit();
    const rows = new Map();
    for (const [x, y] of places.map((place) => floor.places[place])) rows.set(y, [...(rows.get(y) ?? []), x]);
    const ends = [...rows].sort((a, b) => a[0] - b[0]).map(([y, xs]) => [Math.min(...xs), Math.max(...xs), y]);
    const fits = ends.find(([left, right]) => (right - left + floor.dx) * this.scale >= wide);
    if (!fits) return s("g");
    const [x, y] = this.px([fits[0] - floor.dx / 2, fits[2] - floor.dy / 2]);
    return s("text", { class: "room", x: x + 8 * unit(), y: y - 9 * unit() }, label);
  }

  _scale() {
    const u = unit();
    const length = roundDown((90 * u) / this.scale);
    const wide = length * this.scale;
    const [x, y] = [this.x0, this.y0 + this.floor.height * this.scale + 18 * u];
    const bar = s("path", { d: `M${x} ${y - 5 * u}v${5 * u}h${wide}v${-5 * u}`, class: "scale" });
    return s("g", null, bar, s("text", { x: x + wide + 7 * u, y: y + u, class: "small" }, `${number(length)} m`));
  }

  /** Cells as one path, runs of a row in one piece. */
  _cells(cells) {
    const { floor } = this;
    const sorted = [...cells].filter((cell) => floor.grid[cell] >= 0).sort((a, b) => a - b);
    const [wide, high] = [floor.dx * this.scale, floor.dy * this.scale];
    let path = "";
    for (let k = 0; k < sorted.length;) {
      let end = k + 1;
      while (end < sorted.length && sorted[end] === sorted[end - 1] + 1 && sorted[end] % floor.columns) end += 1;
      const [column, row] = [sorted[k] % floor.columns, Math.floor(sorted[k] / floor.columns)];
      const [x, y] = this.px([floor.left + column * floor.dx, floor.bottom + (row + 1) * floor.dy]);
      path += `M${x.toFixed(1)} ${y.toFixed(1)}h${((end - k) * wide).toFixed(1)}v${high.toFixed(1)}h${(-(end - k) * wide).toFixed(1)}z`;
      k = end;
    }
    return path;
  }

  draw({ map, top, rooms, marks, trails, truth, sensors, numbers }) {
    this.canvas.hidden = !map;
    if (map) paint(this.canvas, this.floor, map, top, isDark());
    const states = new Map(rooms.map(({ id, state }) => [id, state]));
    for (const [id, path] of this.rooms) path.setAttribute("class", `tint ${states.get(id) ?? ""}`);
    const placed = sensors.filter(({ id }) => Array.isArray(this.at.get(id)));
    if (sensors !== this.drawn) this.dots.replaceChildren(...placed.map((one) => sensorDot(this.px(this.at.get(one.id)), one)));
    this.drawn = sensors;
    this.above.replaceChildren(
      ...trailDots(trails, ({ at }) => this.px(at)),
      ...truth.map(({ at }) => truthMark(this.px(at))),
      ...sourceMarks(marks, ({ at }) => this.px(at), numbers),
    );
  }
}
