// The drawing of a small network: its nodes on a circle, neighbours next to each other where possible.

import { isDark, s, unit } from "./elements.js";
import { tint } from "./heat_layer.js";
import { sensorDot, sourceMarks, trailDots, truthMark } from "./map_symbols.js";

export const MAX_NODES = 80;
const [EDGE, SIZE] = [56, 11];

export class NetworkDrawing {
  constructor({ pairs, labels, sensors }) {
    this.index = new Map(labels.map((name, k) => [name, k]));
    this.sensorAt = new Map(sensors.map(({ id, at }) => [id, this.index.get(String([at].flat()[0]))]));
    Object.assign(this, { pairs, labels, order: walk(labels.length, pairs) });
    this.svg = s("svg", { "aria-hidden": "true" });
    this.elements = [this.svg];
  }

  heightFor(width) {
    return width / 1.2;
  }

  resize(width, height) {
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const edge = EDGE * unit();
    this.spots = [];
    this.order.forEach((node, k) => {
      const turn = (2 * Math.PI * k) / this.order.length;
      this.spots[node] = [width / 2 + (width / 2 - edge) * Math.sin(turn), height / 2 - (height / 2 - edge) * Math.cos(turn)];
    });
  }

  draw({ map, top, marks, trails, truth, sensors, numbers }) {
    const { spots, pairs, labels } = this;
    const size = SIZE * unit();
    const spot = ({ place }) => spots[this.index.get(String(place))];
    const nodes = spots.flatMap(([x, y], k) => {
      const [r, g, b, a] = tint(map ? map[k] / top : 0, isDark()).map(Math.round);
      const circle = { cx: x, cy: y, r: size };
      const name = s("text", { class: "small middle", x, y: y + size + 14 * unit() }, labels[k]);
      return [s("circle", { class: "node", ...circle }), s("circle", { fill: `rgb(${r} ${g} ${b} / ${a / 255})`, ...circle }), name];
    });
    const dots = sensors.map((one) => [one, spots[this.sensorAt.get(one.id)]]).filter(([, there]) => there);
    this.svg.replaceChildren(
      s("path", { class: "edge", d: pairs.map(([a, b]) => `M${spots[a].join(" ")}L${spots[b].join(" ")}`).join("") }),
      ...nodes,
      ...dots.map(([one, [x, y]]) => sensorDot([x + size, y - size], one)),
      ...trailDots(trails, spot),
      ...truth.filter(spot).map((one) => truthMark(spot(one))),
      ...sourceMarks(marks.filter(spot), spot, numbers),
    );
  }
}

/** All nodes in the order of a walk along the edges. */
function walk(count, pairs) {
  const seen = new Set();
  const visit = (node) => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const pair of pairs) if (pair.includes(node)) visit(pair[1 - pair.indexOf(node)]);
  };
  for (let node = 0; node < count; node += 1) visit(node);
  return [...seen];
}
