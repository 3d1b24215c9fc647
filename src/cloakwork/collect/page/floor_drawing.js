// The drawing of a floor plan or a plane: colour on a canvas, with lines and marks as SVG above it.

import { h, s, unit } from "./elements.js";
import { FloorGrid } from "./floor_grid.js";
import { paint } from "./heat_layer.js";
import { labelSize, sourceMark, sensorDot, truthMark } from "./map_symbols.js";

const MARGIN = 14; // room for the thickness of walls
const FOOT = 26; // room for the scale

export class FloorDrawing {
  constructor(geometry) {
    this.geometry = geometry;
    this.floor = new FloorGrid(geometry);
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.back = s("svg", { class: "back", "aria-hidden": "true" });
    this.front = s("svg", { class: "front", "aria-hidden": "true" });
    this.elements = [this.back, this.canvas, this.front];
    this.span = Math.hypot(this.floor.width, this.floor.height);
    this.ready = false;
  }

  where(source) {
    const zone = zoneOf(source, this.geometry.zones);
    if (zone) return `, in ${zone}`;
    const room = source.at.length === 2 ? this.floor.roomAt(...source.at) : "";
    return room ? `, in the ${room}`.replace(/the (room \d)/, "$1") : "";
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
    const cells = [
      this.px([floor.left, floor.bottom + floor.rows * floor.dy]),
      [floor.columns * floor.dx, floor.rows * floor.dy],
    ];
    const [[left, top], [wide, high]] = cells;
    Object.assign(this.canvas.style, { left: `${left}px`, top: `${top}px` });
    Object.assign(this.canvas.style, { width: `${wide * this.scale}px`, height: `${high * this.scale}px` });
    for (const svg of [this.back, this.front]) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this._fixed();
    this.ready = true;
  }

  /** Pixels of a point in metres; y grows upwards on the floor and downwards on a screen. */
  px([x, y]) {
    return [this.x0 + x * this.scale, this.y0 + (this.floor.height - y) * this.scale];
  }

  _line(segments, attributes) {
    const points = segments.map((segment) =>
      segment.map((point) =>
        this.px(point)
          .map((v) => v.toFixed(1))
          .join(" "),
      ),
    );
    return s("path", { d: points.map(([a, b]) => `M${a}L${b}`).join(""), ...attributes });
  }

  _fixed() {
    const { floor, geometry } = this;
    this.back.replaceChildren(s("path", { class: "floor", d: this._cells(floor.grid.keys()) }));
    this.below = s("g");
    this.above = s("g");
    const weight = Math.max(2, Math.min(6 * unit(), 0.12 * this.scale));
    const doors = geometry.doors ?? [];
    const inside = Math.max(2, 0.75 * weight);
    this.front.replaceChildren(
      this.below,
      this._line(floor.walls, { class: "wall", "stroke-width": inside }),
      this._line(doors, { class: "gap", "stroke-width": inside + 1 }),
      this._line(doors, { class: "door" }),
      this._line(floor.outline(), { class: "wall", "stroke-width": weight }),
      this._scale(),
      this.above,
    );
  }

  _scale() {
    const u = unit();
    const wanted = ((90 * u) / this.scale) * 1.0001;
    const length =
      [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].filter((value) => value <= wanted).pop() ?? 0.1;
    const wide = length * this.scale;
    const [x, y] = [this.x0, this.y0 + this.floor.height * this.scale + 18 * u];
    const bar = s("path", { d: `M${x} ${y - 5 * u}v${5 * u}h${wide}v${-5 * u}`, class: "scale" });
    return s("g", null, bar, s("text", { x: x + wide + 7 * u, y: y + u, class: "small" }, `${length} m`));
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

  /** Cells that a circle may cover: a path along the axes is at most sqrt 2 times as long as the straight line. */
  _reached(source) {
    return this.floor.near(...source.at, Math.SQRT2 * source.radius + this.floor.dx);
  }

  holds(source, [x, y]) {
    if (Math.hypot(x - source.at[0], y - source.at[1]) > source.radius) return false;
    const { floor } = this;
    return !floor.small || this._reached(source).has(floor.column(x) + floor.columns * floor.row(y));
  }

  /** A vicinity: a circle, clipped where walls block the way. */
  _vicinity(source, tag) {
    const { floor } = this;
    const [x, y] = this.px(source.at);
    const radius = Math.max(source.radius * this.scale, 6);
    const circle = (attributes) => s("circle", { cx: x, cy: y, r: radius, ...attributes });
    if (this.geometry.kind !== "floorplan" || !floor.small) return [circle({ class: "vicinity" })];
    const reached = this._reached(source).keys();
    const id = `cut-${tag}-${source.id}`;
    return [
      s("clipPath", { id }, s("path", { d: this._cells(reached) })),
      circle({ class: "vicinity", "clip-path": `url(#${id})` }),
    ];
  }

  draw(frame) {
    const { layers } = frame;
    const dark = getComputedStyle(this.front).colorScheme.includes("dark");
    this.canvas.hidden = !(frame.map && layers.heat !== false);
    if (!this.canvas.hidden) paint(this.canvas, this.floor, frame.map, frame.top, dark);
    const sensors = layers.sensors === false ? [] : this.geometry.sensors;
    const dots = sensors
      .filter((one) => one.at?.length === 2)
      .map((one) => sensorDot(this.px(one.at), one, frame.sensors.get(one.id)));
    const sources = frame.sources.filter((source) => source.at.length === 2);
    const regions = sources.map((source) =>
      s(
        "g",
        { class: `source ${surety(source)}${source.radius > this.span / 5 ? " wide" : ""}` },
        ...this._vicinity(source, frame.tag ?? "live"),
      ),
    );
    this.below.replaceChildren(...dots, ...regions);
    const truth = frame.truth.filter((one) => one.at.length === 2);
    const near = this.span / 4; // a line to a mark far away says nothing
    const lines = truth
      .filter((one) => one.matched && one.apart < near)
      .map((one) => this._line([[one.at, one.matched.at]], { class: "error" }));
    this.above.replaceChildren(
      ...lines,
      ...truth.map((one) => truthMark(this.px(one.at), one.label)),
      ...this._labels(sources, frame),
    );
  }

  /** Marks with their labels, above or below, so that no label covers another label or mark. */
  _labels(sources, frame) {
    const u = unit();
    const roomy = this.size.width >= 520 * u;
    const { width } = this.size;
    const taken = sources.map((source) => [...this.px(source.at), 20 * u, 20 * u]);
    return sources.map((source) => {
      const text = roomy ? frame.label(source) : "";
      const [x, y] = this.px(source.at);
      const reach = Math.max(source.radius * this.scale, 14 * u);
      const { wide, high } = labelSize(text);
      const middle = Math.min(Math.max(x, wide / 2 + 4), width - wide / 2 - 4);
      const lines = [1.15 * high, -1.15 * high, reach + 0.65 * high, -reach - 0.65 * high, 2.3 * high];
      const free = (top) =>
        y + top > high &&
        !taken.some(
          ([p, q, w, h]) => Math.abs(p - middle) < (w + wide) / 2 && Math.abs(q - y - top) < (h + high) / 2,
        );
      const top = lines.find(free) ?? lines[0];
      taken.push([middle, y + top, wide, high]);
      return sourceMark([x, y], source, text, [middle, y + top]);
    });
  }
}

/** The label of the named zone of a source's place, or nothing; of several zones the smallest. */
export function zoneOf(source, zones) {
  const place = Number(source.place);
  const found = (zones ?? []).filter((zone) => (zone.places ?? []).includes(place));
  return found.sort((a, b) => a.places.length - b.places.length)[0]?.label ?? "";
}

function surety(source) {
  const p = source.probability ?? 1;
  return p >= 0.9 ? "sure" : p >= 0.5 ? "likely" : "maybe";
}
