// What the page says of a moment: sentence, rooms and marks come from here, and the lanes from the same rule for rooms.

import { count, distance, duration, isFloor, number, percent, zonesOf } from "./formats.js";

const SURE = 0.8; // a room with this probability is occupied, below 1 - SURE it is empty
const FITS = 0.8; // share of a mark's area that must lie in one room
const LISTED = 4; // rooms in the sentence
const WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const COMMON = /room$|^(kitchen|study|hall|hallway|corridor|office|lounge|bath|garage|cellar|attic|library|canteen|laboratory)$/i;

const overlaps = new WeakMap(); // by the zones of a site: the places in one zone, and those in several

function coverage({ zones, places, labels }) {
  if (!overlaps.has(zones)) {
    const all = zones.flatMap((zone) => zone.places ?? []);
    const once = new Set(all).size;
    overlaps.set(zones, { whole: once > 0 && once === (labels ?? places ?? []).length, apart: once === all.length });
  }
  return overlaps.get(zones);
}

const mode = (counts) => (counts ? counts.indexOf(Math.max(...counts)) : 0);

function stateOf({ probability: p, occupied }) {
  if (p === null || p === undefined) return "unknown";
  if (p >= SURE && occupied !== false) return "occupied";
  return p <= 1 - SURE && occupied !== true ? "empty" : "perhaps";
}

/** The state of each room; where `many` are there but in no room for sure, the likeliest room is a perhaps. */
export function roomStates(zones, many, space) {
  const states = zones.map(stateOf);
  if (many > 0 && coverage(space).whole && states.every((state) => state === "empty")) {
    const chances = zones.map(({ probability }) => probability);
    states[chances.indexOf(Math.max(...chances))] = "perhaps";
  }
  return states;
}

/** The states of each room over a timeline: an array for each zone, null without a result. */
export function laneStates({ zones, counts }, space) {
  const lanes = zones.map(({ id }) => ({ id, states: [] }));
  const steps = zones[0]?.probability.length ?? 0;
  for (let k = 0; k < steps; k += 1) {
    const found = zones.map(({ probability, occupied }) => ({ probability: probability[k], occupied: occupied[k] }));
    const states = roomStates(found, counts?.[k] ?? 0, space);
    lanes.forEach((lane, row) => lane.states.push(states[row] === "unknown" ? null : states[row]));
  }
  return lanes;
}

/** The room that holds a mark's area; undefined where it reaches beyond one. */
function roomOf(mark, space) {
  const around = zonesOf(mark, space);
  const area = mark.vicinity ?? [];
  if (!area.length) return around[0];
  return around.find(({ places }) => {
    const inside = new Set(places);
    return area.filter((place) => inside.has(place)).length >= FITS * area.length;
  });
}

/** How many are in each room: at least its marks, and together as many as is most likely, if rooms are apart. */
function share(rooms, total, space) {
  const there = rooms.filter(({ state }) => state === "occupied");
  for (const room of there) room.people = Math.max(1, room.marks, Math.round(room.expected));
  const left = () => total - there.reduce((sum, { people }) => sum + people, 0);
  if (!coverage(space).apart) return;
  const surplus = ({ people, expected }) => people - expected;
  const pick = (from, sign) => from.reduce((best, room) => (sign * surplus(room) > sign * surplus(best) ? room : best));
  for (let more = there; left() < 0; ) {
    more = there.filter(({ people, marks }) => people > Math.max(1, marks));
    if (!more.length) break;
    pick(more, 1).people -= 1;
  }
  const settled = there.length > 0 && coverage(space).whole && rooms.every(({ state }) => state !== "perhaps");
  while (settled && left() > 0) pick(there, -1).people += 1;
}

/** The shortest range of numbers around one that is likelier than not: [low, high]. */
function likelyRange(counts, middle) {
  let [low, high, p] = [middle, middle, counts[middle] ?? 0];
  while (p < 0.5 && (low > 0 || high < counts.length - 1)) {
    if ((counts[high + 1] ?? -1) > (counts[low - 1] ?? -1)) p += counts[(high += 1)];
    else p += counts[(low -= 1)];
  }
  return [low, high];
}

/**
 * One moment as the page shows it: its `sentence`, how `sure` that is, the `rooms` with their state, the `marks` that
 * lie in a room that is occupied, and how many are there, `low` to `high`.
 */
export function homeModel(result, space, { past = false } = {}) {
  const found = new Map((result.zones ?? []).map((zone) => [zone.id, zone]));
  const blank = { probability: null, occupied: null, expected: null, since: null };
  const zones = space.zones.map((zone) => ({ ...zone, ...blank, ...found.get(zone.id) }));
  const likely = result.counts ? mode(result.counts) : 0;
  const states = roomStates(zones, likely, space);
  const placed = result.sources.map((mark) => ({ ...mark, room: roomOf(mark, space) }));
  const seen = new Map(zones.map(({ id }, k) => [id, states[k]]));
  const fits = ({ room }) => (room ? ["occupied", "unknown"].includes(seen.get(room.id)) : !space.zones.length);
  const marks = result.failed ? [] : placed.filter(fits);
  const rooms = zones.map((zone, k) => {
    const inside = marks.filter(({ room }) => room?.id === zone.id).length;
    return { ...zone, state: states[k], marks: inside, people: 0 };
  });
  if (result.counts) share(rooms, likely, space);
  const apart = coverage(space).apart;
  const counted = rooms.reduce((sum, { people }) => (apart ? sum + people : Math.max(sum, people)), 0);
  const total = result.counts ? Math.max(likely, counted) : result.sources.length;
  const [least, high] = result.counts ? likelyRange(result.counts, total) : [total, total];
  const low = Math.max(least, counted); // whoever is in a room for sure is there
  const p = result.counts ? result.counts.slice(low, high + 1).reduce((sum, one) => sum + one, 0) : null;
  const model = { space, past, result, rooms, marks, total, counted, low, high, p };
  for (const room of rooms) Object.assign(room, roomTexts(room, space));
  return { ...model, sentence: sentence(model), sure: sureness(model), short: shortText(model) };
}

/** What a room's row says: its status, and a probability of what it is. */
function roomTexts({ state, people, probability: p, expected, occupied, since }, { kind }) {
  const [one, many] = isFloor(kind) ? ["person", "people"] : ["source", "sources"];
  const someone = isFloor(kind) || kind === "bits" ? "someone" : "a source";
  const texts = {
    occupied: kind === "bits" ? "in use" : count(people, one, many),
    perhaps: `${p >= 0.5 ? "probably" : "perhaps"} ${someone}`,
    empty: "empty",
    unknown: expected === null ? "no data" : `weight ${number(expected)}`,
  };
  const chance = { unknown: "", empty: `${percent(1 - p)} empty` }[state] ?? `${percent(p)} occupied`;
  return { status: texts[state], chance, from: occupied === (state === "occupied") && state !== "perhaps" ? since : null };
}

const word = (k) => WORDS[k] ?? k.toLocaleString("en-GB");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const list = (names, last) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${last} ${names.at(-1)}`);
/** "in the living room", "in Lab 3". */
const into = ({ label }) => `in ${COMMON.test(label) ? `the ${label[0].toLowerCase()}${label.slice(1)}` : label}`;
const anyOf = (rooms) => (rooms.length > LISTED - 1 ? `in one of ${rooms.length} rooms` : list(rooms.map(into), "or"));

function sentence(model) {
  const { space, result, rooms, past, total, low, high, p } = model;
  if (result.failed) return "The map of this moment could not be computed.";
  const of = (state) => rooms.filter((room) => room.state === state).sort((a, b) => b.people - a.people || b.probability - a.probability);
  const [sure, maybe] = [of("occupied"), of("perhaps")];
  const be = (k) => (past ? (k === 1 ? "was" : "were") : k === 1 ? "is" : "are");
  if (space.kind === "bits") return inUse(sure, maybe, rooms, be);
  const floor = isFloor(space.kind);
  const [someone, one, many] = floor ? ["Someone", "person", "people"] : ["A source", "source", "sources"];
  const about = total >= WORDS.length && p !== null && p < 0.5;
  const range = about ? `about ${word(total)}` : low < high ? `${word(low)} ${high - low > 1 ? "to" : "or"} ${word(high)}` : word(total);
  const lead = `${capital(range)} ${low === high && total === 1 ? one : many} ${be(about ? total : high)}`;
  if (!total && !maybe.length) return floor ? `Nobody ${be(1)} here.` : `No source ${be(1)} found.`;
  if (!space.zones.length || p === null) return `${lead} ${whereabouts(model)}.`;
  const outside = "outside the named rooms";
  if (!sure.length) {
    const probably = total || maybe.some((room) => room.probability >= 0.5) ? "probably" : "perhaps";
    if (total < 2) return `${someone} ${be(1)} ${probably} ${anyOf(maybe) || outside}.`;
    return `${lead} probably here, ${anyOf(maybe) || outside}.`;
  }
  const rest = total - model.counted;
  const each = rest > 1 && rest === maybe.length && rest < LISTED;
  const others = each ? `probably one each ${list(maybe.map(into), "and")}` : `${rest === 1 ? "another" : `${word(rest)} more`} probably ${anyOf(maybe)}`;
  const more = rest > 0 ? `, ${maybe.length ? others : `${word(rest)} elsewhere`}` : "";
  const also = more || (maybe.length ? `, and perhaps ${someone.toLowerCase()} ${anyOf(maybe)}` : "");
  if (sure.length > LISTED) return `${lead} here, in ${sure.length} of ${rooms.length} rooms.`;
  if (sure.length === 1 && !rest) return `${lead} ${into(sure[0])}${also}.`;
  return `${lead} here: ${sure.map((room) => `${word(room.people)} ${into(room)}`).join(", ")}${also}.`;
}

function inUse(sure, maybe, rooms, be) {
  const names = sure.length > LISTED ? "" : list(sure.map(({ label }) => label), "and");
  const doubt = maybe.length > LISTED ? `; ${maybe.length} more perhaps` : maybe.length ? `; perhaps ${list(maybe.map(({ label }) => label), "and")}` : "";
  return `${sure.length ? capital(word(sure.length)) : "None"} of ${rooms.length} rooms ${be(sure.length === 1 ? 1 : 2)} in use${names && `: ${names}`}${doubt}.`;
}

/** Where the marks are, for sites without rooms and methods without probabilities. */
function whereabouts({ marks, total, space }) {
  const spots = marks.map(({ at, place, room }) => {
    if (room) return into(room);
    return at.length === 1 ? `at ${distance(at[0], space.kind)}` : at.length ? "" : `at ${place}`;
  });
  return spots.length === total && total <= LISTED && spots.every(Boolean) ? list(spots, "and") : "there";
}

/** How sure the page is, and of what. */
function sureness({ result, rooms, total, counted, p, space }) {
  if (result.failed) return result.status;
  if (space.kind === "bits") {
    const least = Math.min(...rooms.map(({ probability: one }) => Math.max(one, 1 - one)));
    return `at least ${percent(least)} sure of each room`;
  }
  if (p === null) return "this method gives no probabilities";
  const [nobody, floor] = [result.counts[0] ?? 0, isFloor(space.kind)];
  const [shown, what] = !total
    ? [nobody, floor ? "that nobody is here" : "that there is no source"]
    : total === 1 && !counted
      ? [1 - nobody, floor ? "that someone is here" : "that there is a source"]
      : [p, "of the number"];
  const how = ["almost certain", "very sure", "fairly sure", "unsure"][[0.95, 0.8, 0.6, 0].findIndex((least) => shown >= least)];
  const fit = { best_fit: ", no map fits the readings well", stopped: ", computing stopped early" }[result.status] ?? "";
  return `${how} ${what} (${percent(shown)})${fit}`;
}

/** How many, in a few words. */
function shortText({ result, rooms, total, low, high, space }) {
  if (result.failed) return "no map";
  if (space.kind === "bits") return `${rooms.filter(({ state }) => state === "occupied").length} rooms in use`;
  return high ? (low < high ? `${low}–${howMany(high, space.kind)}` : howMany(total, space.kind)) : howMany(0, space.kind);
}

function howMany(k, kind) {
  const [one, many, none] = isFloor(kind) ? ["person", "people", "nobody"] : ["source", "sources", "no source"];
  return k ? count(k, one, many) : none;
}

/** How many, of a site whose rooms are not known here: the most likely number. */
export function countText(result, kind) {
  if (result.failed) return "no map";
  if (kind === "bits") return `${result.zones.filter((zone) => stateOf(zone) === "occupied").length} rooms in use`;
  return howMany(result.counts ? mode(result.counts) : result.sources.length, kind);
}

/** How often this set-up names the right room, from the plan's simulation; `poor` if no better than guessing. */
export function forecastText({ forecast, lag, period_ms: period }) {
  if (!forecast) return { poor: false, text: "how often this set-up is right was not simulated" };
  const { zone, usual_room: usual, useless } = forecast;
  const share = (value) => value >= 0.95 && value < 0.995 ? [Math.round(100 * value), 100] : [Math.round(10 * value), 10];
  const times = (value) => share(value).join(" times in ");
  const [low, high] = [-2, 2].map((side) => Math.round(10 * Math.min(1, Math.max(0, forecast.room + side * forecast.room_error))));
  const right = low < high ? `${low} to ${high} times in 10` : times(forecast.room);
  const after = lag ? ` after ${duration(lag * period)}` : "";
  if (!useless) return { poor: false, text: `in simulations the ${zone} is right ${right}${after} (always guessing: ${times(usual)})` };
  return { poor: true, text: `In simulations this set-up is no better than guessing: it names the right ${zone} ${right}, always guessing ${times(usual)}.` };
}
