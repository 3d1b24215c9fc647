// The health of sensors and service: a summary, a sortable table, problems and alarms.

import { fill, h, setText } from "./elements.js";
import { ago, count, duration, moment, number, rough } from "./formats.js";
import { few } from "./texts.js";

const MOST_ROWS = 200; // of the table
const MOST_AWAY = 20; // sensors that are listed as problems, each
const NAMES = new Intl.Collator("en", { numeric: true });
const MANY_WAITING = 10; // frames that wait before a warning
// the states of a device that sends a constant
const CANNOT_MEASURE = ["failing", "invalid", "slow"];
const LEVELS = ["alarm", "bad", "wait", "unknown", "good"];
const COLUMNS = [
  { key: "id", name: "Sensor", rank: (sensor) => sensor.id, text: (sensor) => sensor.id },
  { key: "state", name: "State", rank: (sensor) => LEVELS.indexOf(sensor.level), text: (sensor) => sensor.text },
  {
    key: "read",
    name: "Last reading",
    rank: (sensor) => -(sensor.last_reading ?? -1),
    text: (sensor, now) => (sensor.last_reading === null ? "none" : ago(sensor.last_reading, now)),
  },
  {
    key: "noise",
    name: "Noise",
    rank: (sensor) => sensor.sigma,
    text: (sensor, _, unit) => `${number(sensor.sigma)} ${unit}`.trim(),
    numeric: true,
  },
  {
    key: "used",
    name: "Budget used",
    rank: (sensor) => (sensor.allowed ? sensor.used / sensor.allowed : -1),
    text: (sensor) => (Number.isFinite(sensor.used) ? `${sensor.used} of ${sensor.allowed}` : "unknown"),
    numeric: true,
  },
  ...["Late", "Missing"].map((name) => {
    const rank = (sensor) => sensor[name.toLowerCase()] ?? 0;
    return { key: name, name, rank, text: (sensor) => number(rank(sensor), 6), numeric: true };
  }),
];

/** Each sensor of the site with its `level` (a shape and a colour) and its state as `text`. */
export function assessSensors(health, geometry, info, now) {
  const known = new Map(health.sensors.map((sensor) => [sensor.id, sensor]));
  const alarmed = new Set(health.alarms.map((alarm) => alarm.sensor));
  const faulty = new Set(health.faults.filter(({ ended }) => ended === null).map(({ sensor }) => sensor));
  return geometry.sensors.map((planned) => {
    const sensor = { last_reading: null, ...planned, ...known.get(planned.id) };
    const alarm = sensor.alarms > 0 || alarmed.has(planned.id);
    return { ...sensor, ...sensorState(sensor, alarm, faulty.has(planned.id), info, now) };
  });
}

function sensorState(sensor, alarmed, faulty, info, now) {
  const silence = sensor.last_reading === null ? null : now - sensor.last_reading;
  const patience = 2.5 * info.period_ms + 5000 * info.speed;
  if (alarmed) return { level: "alarm", text: "alarm" };
  const recent = (sensor.broken ?? []).filter(({ last }) => now - last < 1000 * info.window_s);
  if (sensor.used > sensor.allowed || recent.some(({ code }) => code === "over budget"))
    return { level: "alarm", text: "over budget" };
  if (recent.length) return { level: "alarm", text: "not as planned" };
  if (sensor.state === "offline") return { level: "bad", text: "offline" };
  if (CANNOT_MEASURE.includes(sensor.state)) return { level: "bad", text: "unable to measure" };
  if (sensor.state === "skipping") return { level: "bad", text: "skipping slots, its storage is slow" };
  if (faulty) return { level: "alarm", text: "changed" };
  if (silence === null) return { level: "unknown", text: "no reading yet" };
  if (sensor.state === "spent") return { level: "wait", text: "budget spent" };
  if (sensor.state === "bench") return { level: "wait", text: "being audited" };
  if (silence > patience) return { level: "bad", text: `silent for ${rough(silence)}` };
  return { level: "good", text: sensor.state === "online" ? "working" : (sensor.state ?? "working") };
}

/** One sentence about all sensors. */
export function summary(sensors) {
  const having = (level) => sensors.filter((sensor) => sensor.level === level).length;
  const parts = [
    [having("alarm"), "with an alarm"],
    [having("bad"), "silent, offline, skipping slots or unable to measure"],
    [having("wait"), "waiting"],
    [having("unknown"), "without a reading yet"],
  ].filter(([k]) => k > 0);
  const all = [`${having("good")} of ${count(sensors.length, "sensor")} working`, parts.map((part) => part.join(" ")).join(", ")];
  const first = sensors.length > MOST_ROWS ? ` The table has the first ${MOST_ROWS}.` : "";
  return `${all.filter(Boolean).join("; ")}.${first}`;
}

/** The table of sensors; rows stay in the document, so focus and reading position do too. */
export class SensorTable {
  constructor(head, body) {
    this.body = body;
    this.sensors = [];
    this.rows = new Map();
    this.sort = { key: "state", down: false };
    this.heads = COLUMNS.map((column) => {
      const button = h(
        "button",
        { onclick: () => this._sortBy(column.key) },
        column.name,
        h("span", { class: "arrow", "aria-hidden": "true" }),
      );
      return h("th", { scope: "col", class: column.numeric ? "numeric" : null }, button);
    });
    head.replaceChildren(...this.heads);
  }

  _sortBy(key) {
    this.sort = { key, down: this.sort.key === key && !this.sort.down };
    this._order();
  }

  clear() {
    this.sensors = [];
    this.rows.clear();
    this.body.replaceChildren();
  }

  show(sensors, now, unit, onlyBad) {
    const fine = onlyBad ? ["good", "wait"] : [];
    this.sensors = sensors.filter(({ level }) => !fine.includes(level));
    Object.assign(this, { now, unit });
    this._order();
  }

  _row(sensor) {
    const row = this.rows.get(sensor.id) ?? this._addRow(sensor);
    row.dataset.level = sensor.level;
    COLUMNS.forEach((column, k) =>
      setText(k === 1 ? row.cells[k].lastChild : row.cells[k], column.text(sensor, this.now, this.unit)),
    );
    return row;
  }

  _addRow({ id }) {
    const cells = COLUMNS.map((column, k) => {
      if (k === 0) return h("th", { scope: "row" });
      const inside = k === 1 ? [h("span", { class: "shape", "aria-hidden": "true" }), h("span")] : [];
      return h("td", { class: column.numeric ? "numeric" : null }, ...inside);
    });
    const row = h("tr", null, ...cells);
    this.rows.set(id, row);
    return row;
  }

  _order() {
    COLUMNS.forEach((column, k) => {
      const sorted = column.key === this.sort.key;
      this.heads[k].setAttribute("aria-sort", sorted ? (this.sort.down ? "descending" : "ascending") : "none");
    });
    const { rank } = COLUMNS.find((column) => column.key === this.sort.key);
    const sign = this.sort.down ? -1 : 1;
    const compare = (a, b) => {
      const [p, q] = [rank(a), rank(b)];
      return sign * (typeof p === "string" ? NAMES.compare(p, q) : p - q) || NAMES.compare(a.id, b.id);
    };
    const rows = [...this.sensors].sort(compare).slice(0, MOST_ROWS).map((sensor) => this._row(sensor));
    const old = [...this.body.children];
    if (rows.length !== old.length || rows.some((row, k) => old[k] !== row)) this.body.replaceChildren(...rows);
  }
}

const ALARM_TEXT =
  "one sequence number arrived with two values. Noise was reused, or someone else sends in this sensor's name. " +
  "Check at once.";
/** Problems by code: how often, of which sensors, and when last. */
function byCode(problems) {
  const entries = new Map();
  for (const problem of problems) {
    if (problem.code === "alarm") continue; // alarms have entries of their own
    const entry = entries.get(problem.code) ?? { ...problem, sensors: [], count: 0, last: 0 };
    entries.set(problem.code, entry);
    if (problem.sensor) entry.sensors.push(problem.sensor);
    entry.count += problem.count;
    entry.last = Math.max(entry.last, problem.last);
  }
  return [...entries.values()].sort((a, b) => b.last - a.last);
}

/** The newest alarm of each sensor, so that none hides another's. */
function newestAlarms(alarms) {
  const newest = new Map();
  for (const alarm of alarms) {
    if (!(newest.get(alarm.sensor)?.received >= alarm.received)) newest.set(alarm.sensor, alarm);
  }
  return [...newest.values()].sort((a, b) => b.received - a.received);
}

const andOthers = (alarms) => (alarms > 1 ? ` and ${count(alarms - 1, "other")}` : "");

/** Sensors that are offline, silent, skipping slots or unable to measure, since their last reading; the first by name. */
function away(sensors, now) {
  const bad = sensors.filter(({ level }) => level === "bad");
  const entries = bad.slice(0, MOST_AWAY).map(({ id, text, last_reading: last }) => ({
    kind: "problem",
    what: `Sensor ${id} is ${text}: check the device`,
    who: last === null ? "no reading so far" : `last reading ${ago(last, now)}`,
    when: last === null ? "" : moment(last, now),
  }));
  const rest = bad.length - entries.length;
  const more = { kind: "problem", what: `So it is with ${count(rest, "more sensor")}`, who: "check the broker and the network first", when: "" };
  return rest ? [...entries, more] : entries;
}

/** Alarms, sensors that are away and counted problems, the worst first. */
export function problemsOf(health, sensors, now) {
  const alarmsOf = new Map(health.sensors.map((sensor) => [sensor.id, sensor.alarms ?? 0]));
  const alarms = newestAlarms(health.alarms).map(({ sensor, seq, received }) => ({
    kind: "alarm",
    what: ALARM_TEXT,
    who: `Sensor ${sensor}, number ${seq}${andOthers(alarmsOf.get(sensor))}, ${ago(received, now)}`,
    when: moment(received, now),
  }));
  const faults = health.faults
    .filter(({ ended }) => ended === null)
    .map(({ sensor, text, raised }) => ({
      kind: "alarm",
      what: text,
      who: `Found ${ago(raised, now)}${sensor ? "; its readings do not count until it follows the model again" : ""}`,
      when: moment(raised, now),
    }));
  const problems = byCode(health.problems).map((problem) => ({
    kind: problem.breaks_claim || problem.code === "flood" ? "alarm" : "problem",
    what: problem.reason,
    who: `${count(problem.count, "time")}, ${few(problem.sensors) || "no known sensor"}, last ${ago(problem.last, now)}`,
    when: moment(problem.last, now),
  }));
  const isAlarm = ({ kind }) => kind === "alarm";
  const others = problems.filter((entry) => !isAlarm(entry));
  return [...alarms, ...faults, ...problems.filter(isAlarm), ...away(sensors, now), ...others];
}

export function showProblems(holder, health, sensors, now) {
  const items = problemsOf(health, sensors, now).map(({ kind, what, who, when }) => {
    const parts = kind === "alarm" ? [h("strong", null, "Alarm: "), what] : [what];
    return h("li", { "data-kind": kind }, h("span", null, ...parts), h("span", { class: "quiet", title: when }, who));
  });
  const list = { class: "problem-list", tabindex: "0", "aria-label": "Problems and alarms" };
  fill(holder, [items.length ? h("ul", list, ...items) : h("p", { class: "quiet" }, "Nothing to report.")]);
}

// by the state of a link
const LINK_TEXTS = {
  ok: { broker: "Broker connected", store: "Store ok" },
  away: { broker: "Broker unavailable", store: "Store unavailable" },
  none: { broker: "No broker" },
};

/** Broker, store and delay, one line each. */
export function showService(holder, health) {
  const lines = ["broker", "store"]
    .filter((name) => health[name])
    .map((name) => {
      const { state, reason } = health[name];
      return [state !== "away", `${LINK_TEXTS[state][name]}${reason && state !== "ok" ? `: ${reason}` : ""}`];
    });
  if (health.lag?.delay_ms != null) {
    const { delay_ms: delay, waiting, reason } = health.lag;
    const behind = waiting ? `, ${count(waiting, "frame")} waiting` : "";
    lines.push([
      !reason && waiting <= MANY_WAITING,
      `Newest map after ${duration(delay)}${behind}${reason ? `: ${reason}` : ""}`,
    ]);
  }
  const shape = () => h("span", { class: "shape", "aria-hidden": "true" });
  fill(
    holder,
    lines.map(([good, text]) => h("li", { "data-good": String(good) }, shape(), text)),
  );
}
