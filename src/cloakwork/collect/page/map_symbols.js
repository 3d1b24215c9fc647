// Symbols that all drawings share. Shapes differ as well as colours, for people who cannot see the colours.

import { s, unit } from "./elements.js";

const LETTER = 6.9; // width of a letter of a label, on average
const LABEL = 22;

/** The size of a label in pixels. */
export function labelSize(text) {
  const u = unit();
  return { wide: text ? (LETTER * text.length + 18) * u : 0, high: LABEL * u };
}

/** A found source: its number, and its text in a box at `spot`. */
export function sourceMark([x, y], source, text, spot) {
  const u = unit();
  const at = source.at.map((value) => value.toFixed(3)).join(" ");
  const group = s("g", { class: "mark", "data-id": source.id, "data-at": at, "data-place": source.place });
  group.append(
    s("circle", { cx: x, cy: y, r: 10 * u }),
    s("text", { x, y: y + 4.4 * u, class: "number" }, String(source.id)),
  );
  if (text) {
    const { wide, high } = labelSize(text);
    group.append(
      s("rect", {
        x: spot[0] - wide / 2,
        y: spot[1] - high / 2,
        width: wide,
        height: high,
        rx: high / 2,
        class: "label",
      }),
      s("text", { x: spot[0], y: spot[1] + 4.4 * u, class: "label-text" }, text),
    );
  }
  return group;
}

/** The true position of a simulated source: a diamond. */
export function truthMark([x, y], label) {
  const r = 9 * unit();
  const group = s("g", { class: "truth" }, s("path", { d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` }));
  if (label) group.append(s("text", { x: x + 1.4 * r, y: y + r / 2, class: "small" }, label));
  return group;
}

/** A sensor by its state: dot (working), ring (waiting), cross (not heard), triangle (alarm). */
export function sensorDot([x, y], sensor, health) {
  const state = health?.level ?? "unknown";
  const r = 3 * unit();
  const shapes = {
    good: () => s("circle", { cx: x, cy: y, r }),
    wait: () => s("circle", { cx: x, cy: y, r: 1.2 * r }),
    unknown: () => s("circle", { cx: x, cy: y, r }),
    bad: () => s("path", { d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` }),
    alarm: () => s("path", { d: `M${x} ${y - 1.7 * r}l${1.8 * r} ${3 * r}h${-3.6 * r}z` }),
  };
  const title = health ? `${sensor.id}: ${health.text}` : sensor.id;
  return s("g", { class: `sensor ${state}`, "data-sensor": sensor.id }, shapes[state](), s("title", null, title));
}
