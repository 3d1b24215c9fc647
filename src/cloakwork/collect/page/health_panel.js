// The health of sensors and service.

import { fill, h, setText, shape } from "./elements.js";
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
  { name: "Sensor", rank: ({ id }) => id, text: ({ id }) => id },
  { name: "State", rank: ({ level }) => LEVELS.indexOf(level), text: ({ text }) => text },
  {
    name: "Last reading",
    rank: ({ last_reading: last }) => -(last ?? -1),
    text: ({ last_reading: last }, now) => (last === null ? "none" : ago(last, now)),
  },
  { name: "Noise", rank: ({ sigma }) => sigma, text: ({ sigma }, _, unit) => (sigma === null ? "random bits" : `${number(sigma)} ${unit}`.trim()), numeric: true },
  {
    name: "Budget used",
    rank: ({ used, allowed }) => (allowed ? used / allowed : -1),
    text: ({ used, allowed }) => (Number.isFinite(used) ? `${used} of ${allowed}` : "unknown"),
    numeric: true,
  },
  ...["Late", "Missing"].map((name) => {
    const rank = (sensor) => sensor[name.toLowerCase()] ?? 0;
    return { name, rank, text: (sensor) => number(rank(sensor), 6), numeric: true };
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
  const { broken, state, used, allowed, last_reading: read } = sensor;
  const silence = now - read;
  const recent = (broken ?? []).filter(({ last }) => now - last < 1000 * info.window_s);
  const over = used > allowed || recent.some(({ code }) => code === "over budget");
  const [, level, text] = [
    [alarmed, "alarm", "alarm"],
    [over, "alarm", "over budget"],
    [recent.length, "alarm", "not as planned"],
    [state === "offline", "bad", "offline"],
    [CANNOT_MEASURE.includes(state), "bad", "unable to measure"],
    [state === "skipping", "bad", "skipping slots, its storage is slow"],
    [read === null, "unknown", "no reading yet"],
    [state === "spent", "wait", "budget spent"],
    [state === "bench", "wait", "being audited"],
    [silence > 2.5 * info.period_ms + 5000 * info.speed, "bad", `silent for ${rough(silence)}`],
    [true, "good", !state || state === "online" ? "working" : state],
  ].find(([is]) => is);
  const gone = level === "bad";
  const changed = faulty && level !== "alarm" && `changed${gone ? `, ${text}` : ""}`;
  return { gone, level: changed ? "alarm" : level, text: changed || text };
}

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
    this.sort = { by: "State", down: false };
    this.heads = COLUMNS.map((column) => {
      const button = h(
        "button",
        { onclick: () => this._sortBy(column.name) },
        column.name,
        h("span", { class: "arrow", "aria-hidden": "true" }),
      );
      return h("th", { scope: "col", class: column.numeric ? "numeric" : null }, button);
    });
    head.replaceChildren(...this.heads);
  }

  _sortBy(by) {
    this.sort = { by, down: this.sort.by === by && !this.sort.down };
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
      const inside = k === 1 ? [shape(), h("span")] : [];
      return h("td", { class: column.numeric ? "numeric" : null }, ...inside);
    });
    const row = h("tr", null, ...cells);
    this.rows.set(id, row);
    return row;
  }

  _order() {
    COLUMNS.forEach((column, k) => {
      const sorted = column.name === this.sort.by;
      this.heads[k].setAttribute("aria-sort", sorted ? (this.sort.down ? "descending" : "ascending") : "none");
    });
    const { rank } = COLUMNS.find((column) => column.name === this.sort.by);
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

/** Sensors that send nothing of use, since their last reading. */
function away(sensors, now) {
  const all = sensors.filter(({ gone }) => gone);
  const entries = all.slice(0, MOST_AWAY).map(({ id, text, last_reading: last }) => ({
    kind: "problem",
    what: `Sensor ${id} is ${text}: check the device`,
    who: last === null ? "no reading so far" : `last reading ${ago(last, now)}`,
    time: last,
  }));
  const times = all.length - entries.length;
  const more = { kind: "problem", what: `${count(times, "more sensor")} away`, who: "check the broker first", times };
  return times ? [...entries, more] : entries;
}

/** Alarms, sensors that are away and counted problems, the worst first. */
export function problemsOf(health, sensors, now) {
  const alarmsOf = new Map(health.sensors.map((sensor) => [sensor.id, sensor.alarms ?? 0]));
  const alarms = newestAlarms(health.alarms).map(({ sensor, seq, received }) => ({
    kind: "alarm",
    what: ALARM_TEXT,
    who: `Sensor ${sensor}, number ${seq}${andOthers(alarmsOf.get(sensor))}, ${ago(received, now)}`,
    time: received,
  }));
  const faults = health.faults
    .filter(({ ended }) => ended === null)
    .map(({ sensor, text, raised }) => ({
      kind: "alarm",
      what: text,
      who: `Found ${ago(raised, now)}${sensor ? "; its readings do not count until it follows the model again" : ""}`,
      time: raised,
    }));
  const problems = byCode(health.problems).map((problem) => ({
    kind: problem.breaks_claim || problem.code === "flood" ? "alarm" : "problem",
    what: problem.reason,
    who: `${count(problem.count, "time")}, ${few(problem.sensors) || "no known sensor"}, last ${ago(problem.last, now)}`,
    time: problem.last,
  }));
  const isAlarm = ({ kind }) => kind === "alarm";
  const others = problems.filter((entry) => !isAlarm(entry));
  return [...alarms, ...faults, ...problems.filter(isAlarm), ...away(sensors, now), ...others];
}

export function showProblems(holder, health, sensors, now) {
  const items = problemsOf(health, sensors, now).map(({ kind, what, who, time }) => {
    const parts = kind === "alarm" ? [h("strong", null, "Alarm: "), what] : [what];
    return h("li", { "data-kind": kind }, h("span", null, ...parts), h("span", { class: "quiet", title: time ? moment(time, now) : null }, who));
  });
  const list = { class: "problem-list", tabindex: "0", "aria-label": "Problems and alarms" };
  fill(holder, [items.length ? h("ul", list, ...items) : h("p", { class: "quiet" }, "Nothing to report.")]);
}

// of a link
const LINK_TEXTS = {
  ok: { broker: "Broker connected", store: "Store ok" },
  away: { broker: "Broker unavailable", store: "Store unavailable" },
  none: { broker: "No broker" },
};

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
    lines.push([!reason && waiting <= MANY_WAITING, `Newest map after ${duration(delay)}${behind}${reason ? `: ${reason}` : ""}`]);
  }
  const items = lines.map(([good, text]) => h("li", { "data-good": String(good) }, shape(), text));
  fill(holder, items);
}
