// What is wrong at a site: the state of each device, one message with its root cause, and the list of problems.

import { ago, count, duration, few, moment, rough } from "./formats.js";

const CANNOT_MEASURE = ["failing", "invalid", "slow"]; // states of a device that sends a constant
const MANY_WAITING = 10; // frames that wait before a warning
// by the code of a problem that breaks the guarantee, in the singular and the plural
const BROKEN = {
  "over budget": ["has", "have", "sent more readings than the plan allows"],
  "other budget": ["reports", "report", "another budget than the plan"],
  "earlier plan": ["was", "were", "provisioned before this plan"],
  "off the slots": ["does", "do", "not measure together with the others"],
};
const CHECK = "Check its power and its network.";

/** Each device with its `level` (a shape and a colour), its state as `text`, and what to `act`. */
export function assessDevices(health, geometry, info, now) {
  const known = new Map(health.sensors.map((sensor) => [sensor.id, sensor]));
  const problems = new Map(geometry.sensors.map(({ id }) => [id, []]));
  for (const problem of health.problems) problems.get(problem.sensor)?.push(problem);
  const alarmed = new Set(health.alarms.map((alarm) => alarm.sensor));
  const faulty = new Map(health.faults.filter(({ ended }) => ended === null).map((fault) => [fault.sensor, fault]));
  const cut = brokerAway(health);
  return geometry.sensors.map((planned) => {
    const broken = problems.get(planned.id).filter((problem) => problem.breaks_claim);
    const device = { last_reading: null, ...planned, ...known.get(planned.id), broken };
    if (device.used > device.allowed) broken.push({ code: "over budget", last: now });
    const alarm = alarmed.has(planned.id) || problems.get(planned.id).some(({ code }) => code === "alarm");
    return { ...device, ...stateOf(device, { alarm, fault: faulty.get(planned.id), cut }, info, now) };
  });
}

const brokerAway = ({ broker }) => broker?.state === "away";

function stateOf(device, { alarm, fault, cut }, info, now) {
  const { broken, state, last_reading: read } = device;
  const silence = now - read;
  const recent = broken.filter(({ last }) => now - last < 1000 * info.window_s);
  const over = recent.some(({ code }) => code === "over budget");
  const late = silence > 2.5 * info.period_ms + 5000 * info.speed;
  const [, level, text, act] = [
    [alarm, "alarm", "alarm", "Take it out of service: its noise may have been reused."],
    [over, "alarm", "over budget", "Provision it again: it sends more than the plan allows."],
    [recent.length, "alarm", "not as planned", "Provision it again from the present plan."],
    [fault, "alarm", "changed", fault?.text],
    [CANNOT_MEASURE.includes(state), "bad", "unable to measure", "Check the sensor at the device, and its log."],
    [state === "skipping", "bad", "skipping slots", "Its storage is slow: replace the card."],
    [cut && (read === null || late || state === "offline"), "unknown", "waits for the broker", ""],
    [state === "offline", "bad", "offline", CHECK],
    [read === null, "unknown", "no reading yet", ""],
    [state === "spent", "wait", "budget spent", "Nothing: it measures again in the next window."],
    [state === "bench", "wait", "being audited", ""],
    [late, "bad", `silent for ${rough(silence)}`, CHECK],
    [true, "good", !state || state === "online" ? "working" : state, ""],
  ].find(([is]) => is);
  return { level, text, act };
}

/** Why the guarantee does not hold from `from` on; empty where it holds. */
export function brokenText(info, devices, from) {
  const since = from - 1000 * info.window_s; // earlier windows may reach into the period
  const reasons = Object.entries(BROKEN).map(([code, [one, many, what]]) => {
    const inView = (broken) => broken.code === code && broken.last > since;
    const names = devices.filter((device) => device.broken.some(inView)).map(({ id }) => id);
    return names.length ? `${few(names)} ${names.length === 1 ? one : many} ${what}` : "";
  });
  const text = reasons.filter(Boolean).join("; ");
  return text && `The privacy guarantee does not hold: ${text}.`;
}

/**
 * The one message at the top: the root cause comes first and hides what follows from it; null when all is well. With
 * `cut` nothing new arrives. `lost` is the error of the connection, or null; `newest` the time of the newest result.
 */
export function rootCause({ lost, health, devices, newest, result, info, now }) {
  if (lost !== null) return { level: "bad", text: `The collector does not answer since ${moment(lost.since, now)}${lost.detail && `: ${lost.detail}`}. What is shown may be out of date; this page tries again.` };
  if (!health) return null;
  const waiting = (name, then) => `The ${name} does not answer${health[name].reason ? ` (${health[name].reason})` : ""}. ${then}`;
  if (brokerAway(health)) return { level: "bad", cut: true, text: waiting("broker", "No readings arrive until it is back: check the broker first.") };
  if (health.store?.state === "away") return { level: "bad", cut: true, text: waiting("store", "Readings wait until it is back: check the database and the disk.") };
  const alarms = devices.filter(({ level }) => level === "alarm").map(({ id }) => id);
  const broken = brokenText(info, devices, now);
  if (broken) return { level: "bad", text: broken, link: true };
  if (alarms.length) return { level: "bad", text: `Alarm: check ${few(alarms)}.`, link: true };
  const fault = health.faults.find(({ sensor, ended }) => !sensor && ended === null);
  if (fault) return { level: "bad", text: fault.text, link: true };
  const spent = devices.filter(({ text }) => text === "budget spent").length;
  const late = newest !== undefined && now - newest > 3 * info.period_ms + 10_000 * info.speed;
  const bad = devices.filter(({ level }) => level === "bad");
  const share = `${bad.length === devices.length ? "All" : `${bad.length} of`} ${count(devices.length, "device")} ${bad.length === 1 ? "needs" : "need"} attention`;
  if (late) {
    if (spent > devices.length / 2) return { level: "wait", text: `Most devices have used up their budget and wait, as planned. The newest picture is from ${moment(newest, now)}.` };
    const why = health.lag?.reason || (bad.length ? `${share}.` : `One is expected every ${duration(info.period_ms)}: check the devices.`);
    return { level: "bad", text: `No new picture since ${moment(newest, now)}. ${why}`, link: bad.length > 0 };
  }
  if (health.lag?.reason) return { level: "bad", text: `Recovery has stopped: ${health.lag.reason}.` };
  if (health.lag?.waiting > MANY_WAITING) return { level: "wait", text: `The collector is behind: ${count(health.lag.waiting, "frame")} wait.` };
  if (bad.length) return { level: "wait", text: `${share}.`, link: true };
  if (result?.doubtful) return { level: "wait", text: "The readings do not fit the model of this site: do not rely on this picture.", link: true };
  return null;
}

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

/** Alarms, faults and counted problems, the worst first; devices have rows of their own. */
export function problemsOf(health, now) {
  const newest = new Map();
  for (const alarm of health.alarms) if (!(newest.get(alarm.sensor)?.received >= alarm.received)) newest.set(alarm.sensor, alarm);
  const all = new Map(health.problems.filter(({ code }) => code === "alarm").map(({ sensor, count: times }) => [sensor, times]));
  const alarms = [...newest.values()]
    .sort((a, b) => b.received - a.received)
    .map(({ sensor, seq, received }) => ({
      kind: "alarm",
      what: "One sequence number arrived with two values: noise was reused, or someone else sends in this device's name.",
      who: `${sensor}, number ${seq}${all.get(sensor) > 1 ? ` and ${count(all.get(sensor) - 1, "other")}` : ""}, ${ago(received, now)}`,
    }));
  const faults = health.faults
    .filter(({ ended, sensor }) => ended === null && !sensor)
    .map(({ text, raised }) => ({ kind: "alarm", what: text, who: `found ${ago(raised, now)}` }));
  const problems = byCode(health.problems).map((problem) => ({
    kind: problem.breaks_claim || problem.code === "flood" ? "alarm" : "problem",
    what: problem.reason,
    who: `${count(problem.count, "time")}, ${few(problem.sensors) || "no known device"}, last ${ago(problem.last, now)}`,
  }));
  const isAlarm = ({ kind }) => kind === "alarm";
  return [...alarms, ...faults, ...problems.filter(isAlarm), ...problems.filter((entry) => !isAlarm(entry))];
}
