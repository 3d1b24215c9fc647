// Home and History: the sentence, the rooms, the map and the timeline of the moment shown.

import * as api from "./api.js";
import { $, fill, h, setText, setVisible } from "./elements.js";
import { ago, count, day, duration, isFloor, moment } from "./formats.js";
import { forecastText, homeModel, laneStates } from "./home_model.js";
import { mapViewIn } from "./map_view.js";
import { privacyLine } from "./privacy_texts.js";

const MANY = 8; // rooms; of more, the first FIRST are shown
const FIRST = 6;
const ORDER = ["occupied", "perhaps", "unknown", "empty"];
const DAY = 86_400_000;
const RANGES = {
  today: ["Today", (now) => new Date(now).setHours(0, 0, 0, 0)],
  day: ["Last 24 hours", (now) => now - DAY],
  week: ["Last 7 days", (now) => now - 7 * DAY],
  all: ["All that is stored", () => null],
};

export class MomentView {
  constructor(data, timeline) {
    Object.assign(this, { data, timeline, trails: [], truth: [], alone: null, model: null });
    const { geometry, info } = data;
    this.mapView = mapViewIn("plan", geometry, "Map");
    setVisible($("map-card"), this.mapView !== null);
    setVisible($("rooms-card"), geometry.zones.length > 0);
    for (const [id, there] of [["alone", info.follows], ["paths", info.follows], ["truth", info.simulated]]) {
      setVisible($(id).parentElement, there && this.mapView !== null);
      $(id).checked = false;
    }
    $("range").replaceChildren(...Object.entries(RANGES).map(([value, [name]]) => new Option(name, value)));
    const { poor, text } = forecastText(info);
    setText($("forecast"), text);
    $("forecast").dataset.poor = String(poor);
    setText($("privacy-line"), privacyLine(info, geometry.kind));
    this.setRange("today");
    timeline.clear("Loading.");
  }

  close() {
    this.mapView?.close();
  }

  /** Chooses the range of the lanes: Home has today. */
  setRange(name) {
    $("range").value = name;
    this.data.range = RANGES[name][1];
  }

  get past() {
    return this.data.mode !== "live";
  }

  /** Loads what was asked for under Advanced, and draws. */
  async compare() {
    const { data } = this;
    const { shown } = data;
    const on = (id) => $(id).checked && document.body.dataset.route === "history" && shown !== null;
    if (!on("paths")) this.trails = [];
    if (!on("truth")) this.truth = [];
    if (!on("alone")) this.alone = null;
    this.draw();
    const same = () => data.open && data.shown === shown;
    const loads = [
      on("alone") && this.alone?.time !== shown.time && data.attempt(async () => {
        const alone = await api.getAlone(data.name, shown.time);
        if (same()) this.alone = alone;
      }),
      on("paths") && data.attempt(async () => {
        const trails = await data.trails(shown);
        if (same()) this.trails = trails;
      }),
      on("truth") && data.attempt(async () => {
        const truth = await api.getTruth(data.name, shown.time);
        if (same()) this.truth = truth?.sources ?? [];
      }),
    ].filter(Boolean);
    await Promise.all(loads);
    if (loads.length && same()) this.draw();
  }

  /** Draws everything from one model; `stale` if the newest result is not of now. */
  draw(stale = this.stale) {
    this.stale = stale;
    const { data } = this;
    const { geometry, shown } = data;
    const drawn = this.alone && this.alone.time === shown?.time ? this.alone : shown;
    const numbers = document.body.dataset.route === "history";
    const options = { past: this.past || Boolean(stale) };
    this.model = drawn && homeModel(drawn, geometry, options);
    const sentence = $("sentence");
    sentence.setAttribute("aria-live", this.past ? "off" : "polite"); // who drags a slider needs no speech
    setText(sentence, this.model?.sentence ?? this._waitingText());
    setText($("sure"), this.model?.sure ?? "");
    setVisible($("go-live"), this.past);
    this._rooms(this.model?.rooms ?? []);
    if (this.model) {
      const { rooms, marks } = this.model;
      const frame = { map: drawn.failed ? null : drawn.map, rooms, marks, numbers, trails: this.trails, truth: this.truth };
      this.mapView?.show(frame, `Map of ${moment(drawn.time, api.now())}`);
    } else this.mapView?.show({}, "No map yet");
    setText($("finality"), this._finality(drawn));
    this.tick();
  }

  /** The time of what is shown; called every second. */
  tick() {
    const { shown } = this.data;
    const now = api.now();
    setText($("when"), !shown ? "" : this.past ? moment(shown.time, now) : `Updated ${ago(shown.time, now)}`);
    this.timeline.show(shown?.time ?? null, shown ? `${moment(shown.time, now)}. ${this.model?.sentence}` : "No data yet", !this.past);
  }

  _rooms(rooms) {
    const items = [...rooms]
      .sort((a, b) => (rooms.length > MANY ? ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || b.people - a.people : 0))
      .map((room) => this._room(room));
    const first = items.length > MANY ? FIRST : items.length;
    fill($("rooms"), items.slice(0, first));
    fill($("rooms-rest"), items.slice(first));
    setVisible($("more-rooms"), items.length > first);
    const used = rooms.filter(({ state }) => state === "occupied").length;
    setText($("more-title"), `${items.length - first} more rooms${used > first ? `, ${used - first} of them in use` : ""}`);
  }

  _room({ id, label, state, status, chance, from, probability }) {
    const bar = h("i");
    bar.style.width = `${100 * (probability ?? 0)}%`;
    return h(
      "li",
      { "data-id": id, "data-state": state },
      h("strong", null, label),
      h("span", { class: "status" }, status),
      h("span", { class: "quiet" }, from === null ? "" : since(from)),
      h("span", { class: "quiet chance" }, chance),
      h("span", { class: "bar", "aria-hidden": "true" }, bar),
    );
  }

  _waitingText() {
    const { data } = this;
    if (data.latest === null && data.health === null) return "Loading …";
    if (this.past) return "Nothing is stored of that moment.";
    if (data.health?.lag?.preparing) return "The first picture follows: the solver is being compiled.";
    const heard = data.health?.sensors.filter(({ last_reading: last }) => last !== null).length ?? 0;
    return `No picture yet: ${heard} of ${count(data.geometry.sensors.length, "device")} heard so far.`;
  }

  _finality(result) {
    const { info } = this.data;
    if (!result) return "";
    if (result === this.alone || !info.follows) return "Computed from this frame alone.";
    if (result.settled) return "Final: computed from the readings before and after this moment.";
    return `Computed from the readings up to this moment; it can still change for ${duration(info.lag * info.period_ms)}.`;
  }

  /** The lanes of the range, each with its label and states. */
  get lanes() {
    const { lanes, geometry } = this.data;
    if (!geometry.zones.length) {
      const states = (lanes.counts ?? []).map((k) => (k === null ? null : k > 0 ? "occupied" : "empty"));
      return [{ id: "", label: isFloor(geometry.kind) ? "People" : "Sources", states }];
    }
    const labels = new Map(geometry.zones.map(({ id, label }) => [id, label]));
    return laneStates(lanes, geometry).map((lane) => ({ ...lane, label: labels.get(lane.id) ?? lane.id }));
  }

  drawLanes() {
    const { lanes, info } = this.data;
    setVisible($("no-lanes"), lanes === null);
    if (lanes === null) this.timeline.clear("No data in this time yet.");
    else this.timeline.draw(lanes, this.lanes, info.period_ms);
    this.tick();
  }

  /** The lanes as a table of comma-separated values: time, room, state, probability. */
  csv() {
    const { lanes } = this.data;
    if (!lanes) return "";
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const row = (lane, k) => {
      const p = lanes.zones.find(({ id }) => id === lane.id)?.probability[k];
      const time = new Date(lanes.since + k * lanes.step_ms).toISOString();
      return [time, quote(lane.label), lane.states[k], p ?? ""].join();
    };
    const rows = this.lanes.flatMap((lane) => lane.states.flatMap((state, k) => (state === null ? [] : [row(lane, k)])));
    return ["time,room,state,probability", ...rows, ""].join("\n");
  }
}

const since = (time) => {
  const now = api.now();
  const today = new Date(time).toDateString() === new Date(now).toDateString();
  return `since ${today ? moment(time, now).slice(0, 5) : day(time)}`;
};
