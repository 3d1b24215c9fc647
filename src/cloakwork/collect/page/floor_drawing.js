// The drawing of a floor plan or a plane: colour on a canvas, lines and marks as SVG above.

import { h, isDark, s, unit } from "./elements.js";
import { FloorGrid } from "./floor_grid.js";
import { number, roundDown } from "./formats.js";
import { paint } from "./heat_layer.js";
import { labelSize, sourceMark, sensorDot, trailPaths, truthMark } from "./map_symbols.js";

const MARGIN = 14; // room for the thickness of walls
const FOOT = 26; // room for the scale

export class FloorDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.floor = new FloorGrid(geometry);
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.back = s("svg", { "aria-hidden": "true" });
    this.front = s("svg", { class: "front", "aria-hidden": "true" });
    this.dots = s("svg", { "aria-hidden": "true" });
    this.above = s("svg", { "aria-hidden": "true" }); // apart: the rest is not painted again
    this.elements = [this.back, this.canvas, this.dots, this.front, this.above];
    this.span = Math.hypot(this.floor.width, this.floor.height);
    this.ready = false;
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
    this.size = { width, height };
    const [left, top] = this.px([floor.left, floor.bottom + floor.rows * floor.dy]);
    const box = { left, top, width: floor.columns * floor.dx * this.scale, height: floor.rows * floor.dy * this.scale };
    for (const [name, value] of Object.entries(box)) this.canvas.style[name] = `${value}px`;
    for (const svg of [this.back, this.dots, this.front, this.above]) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this._fixed();
    this.ready = true;
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
    this.named = []; // boxes of names
    this.names = s("g", null, ...geometry.zones.map((zone) => this._name(zone)));
    this.below = s("g");
    const weight = Math.max(2, Math.min(6 * unit(), 0.12 * this.scale));
    const { doors } = geometry;
    this.front.replaceChildren(
      this.names,
      this.below,
      this._line(floor.walls, { class: "wall", "stroke-width": weight }),
      this._line(doors, { class: "gap", "stroke-width": weight + 1 }),
      this._line(doors, { class: "door" }),
      this._scale(),
    );
  }

  /** The name of a zone, in its topmost row that is wide enough. */
  _name({ label, places }) {
    const { floor } = this;
    const wide = (6.4 * label.length + 10) * unit();
    const rows = new Map();
    for (const [x, y] of places.map((place) => floor.places[place]))
      rows.set(y, [...(rows.get(y) ?? []), x]);
    const ends = [...rows].sort((a, b) => b[0] - a[0]).map(([y, xs]) => [Math.min(...xs), Math.max(...xs), y]);
    const fits = ends.find(([left, right]) => (right - left + floor.dx) * this.scale >= wide);
    if (!fits) return s("g");
    const [x, y] = this.px([(fits[0] + fits[1]) / 2, fits[2] + floor.dy / 2]);
    this.named.push([x, y + 12 * unit(), wide, 16 * unit()]);
    return s("text", { class: "room", x, y: y + 17 * unit() }, label);
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

  /** A vicinity: the cells where a source is with 90 %, and the line around them. */
  _vicinity({ vicinity }) {
    const { floor } = this;
    const inside = new Set(vicinity.map((place) => floor.cell(floor.places[place])));
    const corner = (column, row) => [floor.left + column * floor.dx, floor.bottom + row * floor.dy];
    const edges = [...inside].flatMap((cell) => {
      const [c, r] = [cell % floor.columns, Math.floor(cell / floor.columns)];
      const held = ([across, up]) => floor.at(c + across, r + up) >= 0 && inside.has(cell + across + floor.columns * up);
      const sides = [[1, 0], [-1, 0], [0, 1], [0, -1]].filter((side) => !held(side));
      return sides.map(([across, up]) => {
        const [x, y] = [c + (across > 0), r + (up > 0)];
        return [corner(x, y), corner(x + !across, y + !up)];
      });
    });
    return [s("path", { class: "region", d: this._cells(inside) }), this._line(edges, { class: "vicinity" })];
  }

  draw(frame) {
    const { layers } = frame;
    this.canvas.hidden = !(frame.map && layers.heat !== false);
    if (!this.canvas.hidden) paint(this.canvas, this.floor, frame.map, frame.top, isDark());
    this._sensors(layers.sensors === false ? [] : this.geometry.sensors, frame.sensors);
    const regions = frame.marks
      .filter(({ doubt }) => !doubt && !frame.brief)
      .map((mark) => s("g", { class: mark.radius > this.span / 5 ? "wide" : null }, ...this._vicinity(mark)));
    this.below.replaceChildren(...regions, ...this._trails(frame));
    this.above.replaceChildren(
      ...frame.truth.map((one) => truthMark(this.px(one.at))),
      ...(frame.brief ? this._crowd(frame.marks) : this._labels(frame)),
    );
  }

  _sensors(sensors, known) {
    if (known === this.known && sensors === this.listed && this.drawnScale === this.scale) return;
    Object.assign(this, { known, listed: sensors, drawnScale: this.scale });
    const drawn = [this.scale, ...sensors.map(({ id }) => known.get(id)?.text)].join();
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.dots.replaceChildren(...sensors.map((one) => sensorDot(this.px(one.at), one, known.get(one.id))));
  }

  /** Trails change with a new frame only, not while marks move. */
  _trails({ trails, time, span }) {
    if (this.trailsOf !== trails || this.trailScale !== this.scale) {
      const way = ({ at: from }, { at: to }) =>
        from.every((v, k) => v === to[k]) ? [] : this.floor.way(from, to).map((corner) => this.px(corner));
      this.trailParts = trailPaths(trails, way, time, span);
      Object.assign(this, { trailsOf: trails, trailScale: this.scale });
    }
    return this.trailParts;
  }

  /** Marks without numbers, many of a row in one path: quick to draw. */
  _crowd(marks) {
    const r = 10 * unit();
    const circle = ([x, y]) => `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
    const rows = Map.groupBy(marks, ({ at, doubt }) => `${Boolean(doubt)} ${Math.floor((10 * at[1]) / this.floor.height)}`);
    return [...rows.values()].map((those) => {
      const d = those.map(({ at }) => circle(this.px(at))).join("");
      return s("path", { class: those[0].doubt ? "mark doubt" : "mark", d });
    });
  }

  /** Marks, and beside them labels, where there is room: they cover no name, mark or other label. */
  _labels({ marks, label }) {
    const u = unit();
    const { width, height } = this.size;
    const roomy = width >= 520 * u;
    const taken = [...this.named, ...marks.map((mark) => [...this.px(mark.at), 20 * u, 20 * u])];
    return marks.map((source) => {
      const text = roomy && !source.doubt ? label(source) : "";
      const [x, y] = this.px(source.at);
      const { wide, high } = labelSize(text);
      const [side, line] = [wide / 2 + 13 * u, 1.15 * high];
      const spots = [[0, line], [0, -line], [side, 0], [-side, 0], [side, line], [-side, -line], [0, 2 * line], [0, -2 * line]];
      const free = ([p, q]) =>
        Math.abs(p - width / 2) < (width - wide) / 2 &&
        Math.abs(q - height / 2) < (height - high) / 2 &&
        !taken.some(([a, b, w, h]) => Math.abs(a - p) < (w + wide) / 2 && Math.abs(b - q) < (h + high) / 2);
      const spot = text && spots.map(([across, down]) => [x + across, y + down]).find(free);
      if (spot) taken.push([...spot, wide, high]);
      return sourceMark([x, y], source, spot ? text : "", spot);
    });
  }
}
