// Small charts, each with its numbers as a table for screen readers.

import { h, onResize, s, unit } from "./elements.js";
import { clock, day, moment, number } from "./texts.js";

const MARGINS = [52, 10, 12, 22]; // left, right, top, foot
const ROWS = 40;
const LONG = 3 * 86_400_000; // ms; longer axes show days instead of hours

/** A number over time. `points` are [time, value] in order; a gap longer than `gap` ms breaks the line. */
export class Chart {
  constructor(holder, { title, unit, steps = false, tick = (value) => number(value, 3) }) {
    Object.assign(this, { title, unit, steps, tick, points: [], limit: null, gap: Infinity });
    this.caption = h("figcaption", null, title);
    this.box = h("div", { class: "chart", role: "img", "aria-label": title });
    this.table = h("table", null, h("caption", null, title)); // its rows come with the first data
    this.details = h(
      "details",
      { class: "numbers" },
      h("summary", null, `${title} as a table`),
      h("div", { class: "scroll" }, this.table),
    );
    this.details.addEventListener("toggle", () => this._list());
    holder.append(h("figure", null, this.caption, this.box, this.details));
    onResize(this.box, () => this._draw());
  }

  show({ points, limit = null, gap = Infinity, from, to, text, now, mark = null }) {
    Object.assign(this, { points, limit, gap, from, to, now, mark });
    this.caption.replaceChildren(h("strong", null, this.title), h("span", null, text));
    this.box.setAttribute("aria-label", `${this.title}. ${text}`);
    this._draw();
    this._list();
  }

  _draw() {
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    if (!width || this.from === undefined) return;
    const [left, right, over, foot] = MARGINS.map((side) => side * unit());
    const most = Math.max(this.limit ?? 0, ...this.points.map(([, value]) => value), 0);
    const { top, ticks } = scale(most);
    const x = (time) => left + ((time - this.from) / Math.max(1, this.to - this.from)) * (width - left - right);
    const y = (value) => over + (1 - value / top) * (height - over - foot);
    const parts = ticks.flatMap((tick) => [
      s("path", { class: "grid", d: `M${left} ${y(tick)}H${width - right}` }),
      s("text", { class: "small right", x: left - 7 * unit(), y: y(tick) + 4 }, this.tick(tick)),
    ]);
    if (this.limit !== null)
      parts.push(s("path", { class: "limit", d: `M${left} ${y(this.limit)}H${width - right}` }));
    for (const run of this._runs()) parts.push(...this._run(run, x, y));
    if (this.mark !== null)
      parts.push(s("path", { class: "cursor", d: `M${x(this.mark)} ${over}V${height - foot}` }));
    for (const [share, side] of [
      [0, ""],
      [0.5, "middle"],
      [1, "right"],
    ]) {
      const time = this.from + share * (this.to - this.from);
      parts.push(
        s(
          "text",
          { class: `small ${side}`, x: x(time), y: height - 5 * unit() },
          this.to - this.from > LONG ? day(time) : clock(time).slice(0, 5),
        ),
      );
    }
    this.box.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...parts));
  }

  _run(run, x, y) {
    const path = run
      .map(([time, value], k) => {
        const [px, py] = [x(time).toFixed(1), y(value).toFixed(1)];
        if (k === 0) return `M${px} ${py}`;
        return this.steps ? `H${px}V${py}` : `L${px} ${py}`;
      })
      .join("");
    const [first, last] = [x(run[0][0]), x(run.at(-1)[0])];
    if (run.length === 1) return [s("circle", { class: "point", cx: first, cy: y(run[0][1]), r: 2.5 })];
    const area = s("path", { class: "below", d: `${path}V${y(0)}H${first}z` });
    return [
      area,
      s("path", { class: "curve", d: path }),
      s("circle", { class: "point", cx: last, cy: y(run.at(-1)[1]), r: 3 }),
    ];
  }

  *_runs() {
    let run = [];
    for (const point of this.points) {
      if (run.length && point[0] - run.at(-1)[0] > this.gap) {
        yield run;
        run = [];
      }
      run.push(point);
    }
    if (run.length) yield run;
  }

  _list() {
    if (!this.details.open) return;
    const every = Math.max(1, Math.ceil(this.points.length / ROWS));
    const rows = this.points.filter((_, k) => (this.points.length - 1 - k) % every === 0).reverse();
    const some = every > 1 ? `, every ${every}th of ${this.points.length}` : "";
    this.table.replaceChildren(
      h("caption", null, `${this.title}, newest first${some}`),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Time"), h("th", { scope: "col" }, this.unit))),
      h(
        "tbody",
        null,
        ...rows.map(([time, value]) =>
          h("tr", null, h("th", { scope: "row" }, moment(time, this.now)), h("td", null, number(value, 3))),
        ),
      ),
    );
  }
}

function scale(most) {
  const rough = (most || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((value) => value >= rough);
  const count = Math.max(1, Math.ceil((most || 1) / step - 1e-9));
  return { top: count * step, ticks: Array.from({ length: count + 1 }, (_, k) => k * step) };
}
