// How the sensors and the service are: a sentence, a table that sorts, and what went wrong, with reasons.

import { h, say } from "./dom.js";
import { ago, count, duration, few, moment, number, rough } from "./words.js";

const MANY = 10; // frames that wait before it is worth a warning
const LEVELS = ["alarm", "bad", "wait", "unknown", "good"];
const COLUMNS = [
  { key: "id", name: "Sensor", of: (one) => one.id, text: (one) => one.id },
  { key: "state", name: "State", of: (one) => LEVELS.indexOf(one.level), text: (one) => one.words },
  {
    key: "seen",
    name: "Last seen",
    of: (one) => -(one.last_seen ?? -1),
    text: (one, today) => (one.last_seen === null ? "never" : ago(one.last_seen, today)),
  },
  {
    key: "noise",
    name: "Noise",
    of: (one) => one.sigma,
    text: (one, _, unit) => `${number(one.sigma)} ${unit}`.trim(),
    numeric: true,
  },
  {
    key: "used",
    name: "Budget used",
    of: (one) => (one.allowed ? one.used / one.allowed : -1),
    text: (one) => (Number.isFinite(one.used) ? `${one.used} of ${one.allowed}` : "not said"),
    numeric: true,
  },
  { key: "late", name: "Late", of: (one) => one.late ?? 0, text: (one) => number(one.late ?? 0, 6), numeric: true },
  {
    key: "missing",
    name: "Missing",
    of: (one) => one.missing ?? 0,
    text: (one) => number(one.missing ?? 0, 6),
    numeric: true,
  },
];

/** Each sensor with its `level` (a shape and a colour) and its state in words. */
export function judge(health, geometry, info, today) {
  const known = new Map(health.sensors.map((one) => [one.id, one]));
  const alarmed = new Set(health.alarms.map((one) => one.sensor));
  return geometry.sensors.map((planned) => {
    const told = { last_seen: null, ...planned, ...known.get(planned.id) };
    told.sigma ??= planned.sigma;
    const alarm = told.alarms > 0 || alarmed.has(planned.id);
    return { ...told, ...state(told, alarm, info, today) };
  });
}

function state(one, alarmed, info, today) {
  const quiet = one.last_seen === null ? null : today - one.last_seen;
  const patience = 2.5 * info.period_ms + 5000;
  if (alarmed) return { level: "alarm", words: "alarm" };
  const recent = (one.broken ?? []).filter(({ last }) => today - last < 1000 * info.window_s);
  if (one.used > one.allowed || recent.some(({ reason }) => reason.startsWith("over budget")))
    return { level: "alarm", words: "over budget" };
  if (recent.length) return { level: "alarm", words: "not as planned" };
  if (one.state === "offline") return { level: "bad", words: "offline" };
  if (quiet === null) return { level: "unknown", words: "not heard yet" };
  if (one.state === "spent") return { level: "wait", words: "budget spent, waits" };
  if (one.state === "bench") return { level: "wait", words: "being audited" };
  if (quiet > patience) return { level: "bad", words: `silent for ${rough(quiet)}` };
  return { level: "good", words: one.state === "online" ? "at work" : (one.state ?? "at work") };
}

/** One sentence over all sensors. */
export function summary(judged) {
  const by = (level) => judged.filter((one) => one.level === level).length;
  const parts = [
    [by("alarm"), "with an alarm"],
    [by("bad"), "silent or offline"],
    [by("wait"), "waiting"],
    [by("unknown"), "not heard yet"],
  ].filter(([k]) => k > 0);
  const good = `${by("good")} of ${count(judged.length, "sensor")} at work`;
  return parts.length ? `${good}; ${parts.map(([k, what]) => `${k} ${what}`).join(", ")}.` : `${good}.`;
}

/** The table of sensors; rows stay where they are in the document, so that focus and reading position do too. */
export class SensorTable {
  constructor(head, body, { onPoint }) {
    this.body = body;
    this.rows = new Map();
    this.sort = { key: "state", down: false };
    this.onPoint = onPoint;
    this.heads = COLUMNS.map((column) => {
      const button = h(
        "button",
        { type: "button", onclick: () => this._turn(column.key) },
        column.name,
        h("span", { class: "arrow", "aria-hidden": "true" }),
      );
      return h("th", { scope: "col", class: column.numeric ? "numeric" : null }, button);
    });
    head.replaceChildren(...this.heads);
  }

  _turn(key) {
    this.sort = { key, down: this.sort.key === key && !this.sort.down };
    this._order();
  }

  clear() {
    this.judged = [];
    this.rows.clear();
    this.body.replaceChildren();
  }

  show(judged, today, unit, onlyBad) {
    this.judged = judged;
    const ids = new Set(judged.map((one) => one.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      row.remove();
      this.rows.delete(id);
    }
    for (const one of judged) {
      const row = this.rows.get(one.id) ?? this._row(one);
      row.hidden = onlyBad && (one.level === "good" || one.level === "wait");
      row.dataset.level = one.level;
      COLUMNS.forEach((column, k) =>
        say(k === 1 ? row.cells[k].lastChild : row.cells[k], column.text(one, today, unit)),
      );
    }
    this._order();
  }

  _row(one) {
    const cells = COLUMNS.map((column, k) => {
      if (k === 0) return h("th", { scope: "row" });
      const inside = k === 1 ? [h("span", { class: "shape", "aria-hidden": "true" }), h("span")] : [];
      return h("td", { class: column.numeric ? "numeric" : null }, ...inside);
    });
    const row = h(
      "tr",
      { onmouseenter: () => this.onPoint(one.id), onmouseleave: () => this.onPoint(null) },
      ...cells,
    );
    this.rows.set(one.id, row);
    return row;
  }

  _order() {
    COLUMNS.forEach((column, k) => {
      const sorted = column.key === this.sort.key;
      this.heads[k].setAttribute("aria-sort", sorted ? (this.sort.down ? "descending" : "ascending") : "none");
    });
    const { of } = COLUMNS.find((column) => column.key === this.sort.key);
    const sign = this.sort.down ? -1 : 1;
    const compare = (a, b) => {
      const [p, q] = [of(a), of(b)];
      return (
        sign * (typeof p === "string" ? p.localeCompare(q, "en", { numeric: true }) : p - q) ||
        a.id.localeCompare(b.id, "en", { numeric: true })
      );
    };
    const wanted = [...(this.judged ?? [])].sort(compare).map((one) => this.rows.get(one.id));
    if (wanted.some((row, k) => this.body.children[k] !== row)) this.body.replaceChildren(...wanted);
  }
}

const TWO_VALUES =
  "one number came with two values. Noise was used twice, or someone else speaks in this sensor's name. Look at once.";
const GRAVE = /^(over budget|other budget|off the slots)/; // the site's claim does not hold

/** Counted problems, one entry a reason: how often, of which sensors, and when last. */
function byReason(problems) {
  const found = new Map();
  for (const one of problems) {
    if (one.reason.startsWith("alarm")) continue; // alarms have entries of their own
    const known = found.get(one.reason) ?? { sensors: [], count: 0, last: 0 };
    found.set(one.reason, known);
    if (one.sensor) known.sensors.push(one.sensor);
    known.count += one.count;
    known.last = Math.max(known.last, one.last);
  }
  return [...found].sort((a, b) => b[1].last - a[1].last);
}

/** The newest alarm of each sensor: one that raises many must not hide those of others. */
function newest(alarms) {
  const found = new Map();
  for (const one of alarms) {
    if (!(found.get(one.sensor)?.received >= one.received)) found.set(one.sensor, one);
  }
  return [...found.values()].sort((a, b) => b.received - a.received);
}

const others = (often) => (often > 1 ? ` and ${count(often - 1, "other")}` : "");

/** Alarms and counted problems with their reasons, worst first. */
export function worries(holder, health, today) {
  const often = new Map(health.sensors.map((one) => [one.id, one.alarms ?? 0]));
  const alarms = newest(health.alarms).map((one) => ({
    kind: "alarm",
    what: TWO_VALUES,
    who: `Sensor ${one.sensor}, number ${one.seq}${others(often.get(one.sensor))}, ${ago(one.received, today)}`,
    when: moment(one.received, today),
  }));
  const problems = byReason(health.problems).map(([reason, { sensors, count: often, last }]) => ({
    kind: GRAVE.test(reason) ? "alarm" : "problem",
    what: reason,
    who: `${count(often, "time")}, ${sensors.length ? few(sensors) : "no known sensor"}, last ${ago(last, today)}`,
    when: moment(last, today),
  }));
  const grave = problems.filter((one) => one.kind === "alarm");
  const told = [...alarms, ...grave, ...problems.filter((one) => one.kind !== "alarm")];
  const text = JSON.stringify(told);
  if (holder.dataset.text === text) return;
  holder.dataset.text = text;
  if (!told.length) {
    holder.replaceChildren(h("p", { class: "quiet" }, "Nothing to report."));
    return;
  }
  const items = told.map(({ kind, what, who, when }) => {
    const words = kind === "alarm" ? [h("strong", null, "Alarm: "), what] : [what];
    return h("li", { "data-kind": kind }, h("span", null, ...words), h("span", { class: "quiet", title: when }, who));
  });
  const list = h("ul", { class: "worry-list", tabindex: "0", "aria-label": "Problems and alarms" }, ...items);
  holder.replaceChildren(list);
}

const FINE = new Set(["ok", "none"]);
const STATES = { ok: "connected", away: "away", none: "none" };

/** Broker, store and delay, one line each. */
export function service(holder, health) {
  const lines = [
    ["Broker", health.broker],
    ["Store", health.store],
  ]
    .filter(([, part]) => part?.state)
    .map(([name, part]) => {
      const good = FINE.has(part.state);
      const why = part.reason && part.state !== "ok" ? `: ${part.reason}` : "";
      return [good, `${name} ${name === "Store" && good ? "ok" : (STATES[part.state] ?? part.state)}${why}`];
    });
  if (health.delay_ms !== null) {
    const behind = health.waiting ? `, ${count(health.waiting, "frame")} waiting` : "";
    const why = health.stands ? `: ${health.stands}` : "";
    lines.push([
      !health.stands && health.waiting <= MANY,
      `Newest map after ${duration(health.delay_ms)}${behind}${why}`,
    ]);
  }
  const shape = () => h("span", { class: "shape", "aria-hidden": "true" });
  holder.replaceChildren(...lines.map(([good, words]) => h("li", { "data-good": String(good) }, shape(), words)));
}
