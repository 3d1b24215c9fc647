// One site: its data, what the page shows of it, and its live events.

import * as api from "./api.js";
import { AttackerView } from "./attacker_view.js";
import { $, setText, setVisible } from "./elements.js";
import { assessSensors, showProblems, showService, summary } from "./health_panel.js";
import { MapView, marksOf } from "./map_view.js";
import { pictureText, showEstimate, showKey, showPrivacy } from "./panels.js";
import { ResultHistory } from "./result_history.js";
import { count, duration, moment, zonesOf } from "./formats.js";
import * as texts from "./texts.js";
import { TruthLayer } from "./truth_layer.js";

const HEALTH_MS = 10_000;
const CROWD = 60; // marks
const REST_MS = 500; // until a slider rests
const TIMELINE_MS = 3000; // between two requests for the lanes
const NO_HEALTH = { sensors: [], problems: [], alarms: [], faults: [], broker: null, store: null, lag: null };

/** `page` has what all sites share: timeline, table, announce, setConnected and handleError. */
export class SiteView {
  constructor(info, geometry, page) {
    Object.assign(this, { info, geometry, page, kind: geometry.kind, name: info.name });
    Object.assign(this, { health: NO_HEALTH, sensors: [], sensorsById: new Map(), shown: null, latest: null, alone: null, solved: 0 });
    this.history = new ResultHistory(info);
    this.open = true;
    this.mapView = new MapView($("plan"), geometry);
    this.truth = new TruthLayer(this);
    this.attacker = new AttackerView(this);
    api.setClock(info.now, info);
  }

  async start() {
    const { info, page } = this;
    page.timeline.prepare(info.period_ms, info.follows && info.lag > 0);
    page.table.clear();
    setText($("map-title"), this.mapped ? "Map" : "Zones");
    for (const id of ["layers", "plans", "key"]) setVisible($(id), this.mapped);
    setVisible($("truth-choice"), info.simulated);
    setVisible($("alone-choice"), info.follows);
    setText($("fast"), texts.speedText(info.speed));
    setVisible($("fast"), info.speed !== 1);
    setText($("longer"), texts.longerText(this.geometry));
    this.events = new api.EventStream(this.name, {
      onResult: (result) => this.attempt(() => this.addResult(result)),
      onOther: () => {
        clearTimeout(this.soon);
        this.soon = setTimeout(() => this.loadHealth(), 500);
      },
      onState: (link) => {
        if (!this.open) return;
        if (link === "open") page.setConnected(true);
        else this.attempt(() => api.getSites()); // a request says why the stream ended
      },
    });
    this.timer = setInterval(() => this._poll(), HEALTH_MS);
    this._setLoading(true);
    this.drawHealth();
    await this.attempt(() => this._loadFirst());
    await Promise.all([this.loadResults(), this.loadHealth(), this.loadTimeline()]);
    if (!this.open) return;
    this._setLoading(false);
    this.redraw();
    const { geometry, latest } = this;
    page.announce("site", () => `${this.name}. ${latest ? texts.headlineSentence(latest, geometry) : "No map yet."}`);
  }

  _setLoading(loading) {
    this.loading = loading;
    $("board").ariaBusy = String(loading);
  }

  _poll() {
    if (document.hidden) return;
    this.loadHealth();
    if (!this.events.open) this.loadResults();
  }

  close() {
    this.open = false;
    this.events?.close();
    clearInterval(this.timer);
    for (const timer of [this.laneTimer, this.resting]) clearTimeout(timer);
    this.mapView.close();
    this.attacker.mapView.close();
  }

  async refresh() {
    await this.loadHealth();
    await Promise.all([this.loadResults(), this.loadTimeline()]);
  }

  /** Runs requests that may fail; a closed site ignores errors. */
  async attempt(work) {
    try {
      return await work();
    } catch (problem) {
      if (this.open) this.page.handleError(problem);
      return undefined;
    }
  }

  async _loadFirst() {
    const newest = await this.history.before(api.now() + this.info.ahead_ms);
    const whole = newest && (await this.history.get(newest.time));
    if (!whole || !this.open) return;
    this.latest = whole;
    this.history.fit(whole.tracks.length);
    if (this.page.timeline.live) await this._render(whole);
  }

  loadResults() {
    return this.attempt(async () => {
      await this.history.load();
      this.page.setConnected(true);
      if (!this.open) return;
      this.newest = this.history.newest?.time;
      if (this.newest === undefined) await this._render(null);
      else await this._catchUp();
    });
  }

  loadHealth() {
    return this.attempt(async () => {
      const health = await api.getHealth(this.name);
      this.page.setConnected(true);
      if (!this.open) return;
      const total = ({ faults, sensors }) => sensors.reduce((sum, sensor) => sum + (sensor.alarms ?? 0), faults.length);
      const alarms = total(health) - total(this.health);
      if (alarms > 0 && this.health !== NO_HEALTH) this.page.announce("alarm", () => "New alarm.");
      this.health = health;
      this.page.overview.showHealth(this.name, health);
      api.setClock(health.now, this.info);
      this.drawHealth();
    });
  }

  /** Loads the lanes of the timeline and their tracks. */
  loadTimeline() {
    clearTimeout(this.laneTimer);
    this.laneTimer = null;
    return this.attempt(async () => {
      const { timeline } = this.page;
      const { range } = timeline;
      const since = range === null ? null : Math.max(0, Math.floor(api.now() - range));
      const lanes = await api.getTimeline(this.name, since);
      const { items } = await api.getTracks(this.name, lanes.since, lanes.until);
      if (!this.open || range !== timeline.range) return;
      timeline.draw(lanes, items, (point) => zonesOf(point, this.geometry)[0]?.id);
      this._showMoment();
    });
  }

  /** Adds a result from an event; of many at once only the newest is drawn. */
  async addResult(result) {
    if (!this.open || result.failed) return; // one device can make frames fail: they must not hide others
    if (!result.settled && result.solved > this.solved) {
      this.solved = result.solved;
      api.setClock(result.solved, this.info);
    }
    const { map, ...rest } = result;
    this.history.add(rest);
    this.laneTimer ??= setTimeout(() => this.loadTimeline(), TIMELINE_MS);
    if (this.newest === undefined || this.newest < result.time) {
      this.newest = result.time;
      this.page.overview.showResult(this.name, rest);
    }
    this.fetching ??= this._catchUp().finally(() => {
      this.fetching = null;
    });
    await this.fetching;
  }

  /** Draws the newest result of the view, live or settled. */
  async _catchUp() {
    const { timeline } = this.page;
    while (this.open && this.latest?.time !== this.newest) {
      const time = this.newest;
      const whole = await this.history.get(time);
      if (!this.open) return;
      if (whole) this.latest = whole;
      else if (this.newest === time) this.newest = this.latest?.time; // it was erased meanwhile
      if (whole && timeline.live) await this._render(whole, true);
    }
    if (timeline.mode === "settled") await this.show("settled");
    else this.redraw();
  }

  /** Shows a moment of the timeline: "live", "settled", or the frame nearest to a time. */
  async show(asked) {
    this.requested = asked;
    this._restSoon();
    this.showing ??= this.attempt(() => this._showRequested()).finally(() => {
      this.showing = null;
    });
    await this.showing;
  }

  _restSoon() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.attempt(() => this._rest()), REST_MS);
  }

  /** Loads the trails of a moment, once the slider is let go. */
  async _rest() {
    if ($("slider").matches(":active")) return this._restSoon();
    await this.showing;
    if (this.shown) await this.history.surround(this.shown.time);
    if (this.open) this.redraw();
  }

  /** Shows moments until the last one asked for: a slider asks faster than the collector answers. */
  async _showRequested() {
    const { history } = this;
    for (let asked = null; this.open && asked !== this.requested;) {
      asked = this.requested;
      const known = { live: this.latest, settled: history.settled };
      const found = asked in known ? known[asked] : await history.nearest(asked);
      const result = found?.map ? found : found && (await history.get(found.time));
      const passed = asked !== this.requested && this.requested in known;
      const drawn = result && result === this.shown && this.brief && $("slider").matches(":active");
      const before = this.shown;
      if (this.open && !passed && !drawn) await this._render(result ?? null);
      const by = Math.sign(result?.time - before?.time);
      if (this.open && this.brief && by) history.expect(result.time, by, (time) => this.page.timeline.has(time));
    }
  }

  /** Shows the frame so many frames later; gives whether there is one. */
  async step(by) {
    const found = await this.attempt(() => this.history.step(this.shown.time, by));
    if (!found || found.time === this.latest?.time) return false;
    await this.show(found.time);
    return true;
  }

  /** Shows one result: on the map, as text, and in the views to compare. */
  async _render(result, announce = false) {
    const before = this.shown;
    this.shown = result;
    this.announced ??= result;
    if (announce && before) this.page.announce("map", () => this._changes());
    this.tick();
    await this.compare();
  }

  /** Draws the result shown, and what is compared with it. */
  async compare() {
    this.redraw();
    this.attacker.show();
    await Promise.all([this.truth.load(), this.loadAlone()]);
  }

  /** Recovers the frame shown alone, where asked for. */
  loadAlone() {
    const time = this.shown?.time;
    if (!this.layers.alone || !time || this.alone?.time === time) return null;
    return this.attempt(async () => {
      const alone = await api.getAlone(this.name, time);
      if (!this.open || this.shown?.time !== time) return;
      this.alone = alone;
      this.redraw();
    });
  }

  _changes() {
    if (!this.open || !this.page.timeline.live) return "";
    const before = this.announced;
    this.announced = this.shown;
    return texts.changes(before, this.shown, (mark) => this.where(mark, this.shown), this.geometry);
  }

  get mapped() {
    return this.kind !== "bits";
  }

  get layers() {
    const on = (name) => $(`layer-${name}`).checked;
    return {
      heat: on("heat"),
      sensors: on("sensors"),
      attack: on("attack") && this.mapped,
      alone: on("alone") && this.info.follows && this.mapped,
      truth: on("truth") && this.info.simulated,
    };
  }

  where(mark, result) {
    return texts.whereText(mark, this.geometry, result?.zones);
  }

  /** The result that the map shows: of the frame shown, followed or alone. */
  get drawn() {
    const { alone, layers, shown } = this;
    return layers.alone && shown && alone?.time === shown.time ? alone : shown;
  }

  redraw() {
    const { drawn: result, geometry: space, layers } = this;
    const { mode } = this.page.timeline;
    const now = api.now();
    const marks = result ? marksOf(result) : [];
    const truth = this.truth.match(result?.time, marks);
    const odds = !result || texts.givesOdds(result);
    const brief = marks.length > CROWD && $("slider").matches(":active"); // while it is dragged, only the marks
    const frame = {
      time: result?.time,
      marks,
      map: result?.map ?? null,
      trails: result && !brief ? this.history.trails(result) : new Map(),
      span: this.history.trail,
      truth,
      layers,
      sensors: this.sensorsById,
      label: (mark) => texts.brief(mark, odds, space),
      brief,
    };
    const where = (mark) => this.where(mark, result);
    this.mapView.show(frame, pictureText(result, brief ? [] : marks, space, where, now));
    this.brief = brief;
    if (brief) return this._showMoment();
    const views = [
      { name: "Now", result: this.latest },
      { name: "Settled", result: this.info.follows ? this.history.settled : null },
    ];
    showEstimate(result, { marks, views, space, where, now, truth, info: this.info });
    this.page.timeline.say(texts.laneTexts(result, space));
    showKey(layers, { kind: this.kind, odds, marks, trails: frame.trails, sensors: this.sensors });
    setVisible($("no-map"), !result);
    if (!result) setText($("no-map"), this._noMapText());
    const view = { mode, alone: result === this.alone };
    setText($("live-caption"), result ? texts.viewText(result, view, this.info, now) : "");
    document.title = `${result ? `${texts.headline(result, space).title} · ` : ""}${this.name} · Cloakwork`;
    this.attacker.redraw();
    this._showMoment();
  }

  _showMoment() {
    const { shown } = this;
    const text = shown && `${moment(shown.time, api.now())}. ${texts.headlineSentence(shown, this.geometry)}`;
    this.page.timeline.show(shown?.time ?? null, text ?? "No history yet");
  }

  _noMapText() {
    if (this.loading) return "Loading the newest map.";
    if (!this.page.timeline.live) return "No map of that moment is stored.";
    if (this.health.lag?.preparing) return "The solver is being compiled for this site. The first map follows.";
    const heard = this.sensors.filter((sensor) => sensor.last_reading !== null).length;
    return (
      "No map yet. The first one appears when the sensors have sent their readings: one frame every " +
      `${duration(this.info.period_ms)}. ${heard} of ${count(this.geometry.sensors.length, "sensor")} heard so far.`
    );
  }

  drawHealth() {
    const now = api.now();
    this.sensors = assessSensors(this.health, this.geometry, this.info, now);
    this.sensorsById = new Map(this.sensors.map((sensor) => [sensor.id, sensor]));
    this.page.table.show(this.sensors, now, this.info.unit, $("only-bad").checked);
    setText($("sensors-summary"), summary(this.sensors));
    showService($("service"), this.health);
    showProblems($("problems"), this.health, this.sensors, now);
    showPrivacy(this.info, this.kind, this.sensors, Math.max(0, now - (this.page.timeline.range ?? now)));
    this.redraw();
    this.tick();
  }

  /** Updates the age of the map. Called once a second. */
  tick() {
    const now = api.now();
    const { connected, timeline } = this.page;
    const newest = this.latest?.time ?? null;
    const late = newest !== null && now - newest > 3 * this.info.period_ms + 10_000 * this.info.speed;
    const { mode } = timeline;
    const past = mode === "live" ? null : (this.shown?.time ?? null);
    const [state, text] = texts.stateText({ connected, newest, late, past, mode, now });
    for (const id of ["state", "board"]) $(id).dataset.state = state;
    setText($("state-text"), text);
    setVisible($("stale"), late && connected !== false);
    if (late) setText($("stale"), texts.staleText(this.sensors, newest, this.info.period_ms, now));
  }
}
