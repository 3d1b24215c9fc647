// One site: its data, what the page shows of it, and its live events.

import * as api from "./api.js";
import { ComparisonView } from "./comparison.js";
import { $, setText, setVisible } from "./elements.js";
import { assessSensors, showProblems, showService, summary } from "./health_panel.js";
import { MapView, numberMarks } from "./map_view.js";
import { drawCharts, pictureText, showEstimate, showKey, showPrivacy, showZones } from "./panels.js";
import * as texts from "./texts.js";

const HEALTH_MS = 10_000;
const MOST_RESULTS = 5000;
const MOST_KEPT = 300; // results with their maps
const NO_HEALTH = { sensors: [], problems: [], alarms: [], broker: null, store: null, lag: null };

/** `page` has what all sites share: history, table, announce, setConnected and handleError. */
export class SiteView {
  constructor(info, geometry, page) {
    Object.assign(this, { info, geometry, page, kind: geometry.kind, name: info.name });
    Object.assign(this, {
      health: NO_HEALTH,
      sensors: [],
      results: [],
      marks: [],
      shown: null,
      latest: null,
    });
    this.kept = new Map();
    this.open = true;
    this.mapView = new MapView($("plan"), geometry);
    this.comparison = new ComparisonView(this);
  }

  async start() {
    const { page } = this;
    page.history.prepare(this.info.period_ms);
    page.table.clear();
    this.events = new api.EventStream(this.name, {
      onResult: (result) => this.attempt(() => this.addResult(result)),
      onOther: () => {
        clearTimeout(this.soon);
        this.soon = setTimeout(() => this.loadHealth(), 500);
      },
      onState: (link) => {
        if (!this.open) return;
        if (link === "open") page.setConnected(true);
        else this.attempt(() => api.getSites()); // an event stream does not say why it ended; a request does
      },
    });
    this.timer = setInterval(() => this._poll(), HEALTH_MS);
    this._setLoading(true);
    this.drawHealth();
    await Promise.all([this.loadLatest(), this.loadHealth(), this.loadHistory(), this.comparison.probe()]);
    if (!this.open) return;
    this._setLoading(false);
    this.redraw();
    page.announce("site", () => `${this.name}. ${this.latest ? texts.countText(this.latest) : "No map yet."}`);
  }

  _setLoading(loading) {
    this.loading = loading;
    $("board").ariaBusy = String(loading);
  }

  /** Loads what no event brings; and results, while there are no events. */
  _poll() {
    if (document.hidden) return;
    this.loadHealth();
    if (!this.events.open) this.loadLatest();
  }

  close() {
    this.open = false;
    this.events?.close();
    clearInterval(this.timer);
    this.mapView.close();
    this.comparison.mapView.close();
  }

  /** Loads everything again, after a time without connection. */
  async refresh() {
    await Promise.all([this.loadLatest(), this.loadHealth(), this.loadHistory()]);
  }

  /** Runs requests that may fail; errors that arrive after the site was closed are ignored. */
  async attempt(work) {
    try {
      return await work();
    } catch (problem) {
      if (this.open) this.page.handleError(problem);
      return undefined;
    }
  }

  loadLatest() {
    return this.attempt(async () => {
      const latest = await api.getLatest(this.name);
      this.page.setConnected(true);
      if (!this.open) return;
      if (latest) await this.addResult(latest);
      else await this._render(null);
    });
  }

  loadHealth() {
    return this.attempt(async () => {
      const health = await api.getHealth(this.name);
      this.page.setConnected(true);
      if (!this.open) return;
      const total = ({ sensors }) => sensors.reduce((sum, sensor) => sum + (sensor.alarms ?? 0), 0);
      const alarms = total(health) - total(this.health);
      if (alarms > 0 && this.health !== NO_HEALTH) this.page.announce("alarm", () => "New alarm.");
      this.health = health;
      this.drawHealth();
    });
  }

  loadHistory() {
    return this.attempt(async () => {
      const { history } = this.page;
      // one window more than the slider shows: the budget chart counts back
      const since = Math.max(0, Math.floor(api.now() - history.range - 1000 * this.info.window_s));
      const results = await api.getResults(this.name, since, null, MOST_RESULTS);
      if (!this.open) return;
      this.results = results;
      history.set(results.filter((result) => result.time >= api.now() - history.range));
      this.drawCharts();
    });
  }

  /** Adds a result, from an event or a request; of many at once only the newest is drawn. */
  async addResult(result) {
    if (!this.open || result.failed) return; // one device can make frames fail: they must not hide others
    const { map, ...rest } = result;
    if (!this.results.some(({ time }) => time === rest.time)) {
      this.results = [...this.results, rest].sort((a, b) => a.time - b.time).slice(-MOST_RESULTS);
    }
    this.page.history.add(rest);
    this.drawCharts();
    if (map) this._keep(result);
    const wrong = this.newest > api.now() + this.info.ahead_ms; // of a clock that has since been corrected
    if (this.newest === undefined || this.newest < result.time || wrong) this.newest = result.time;
    this.fetching ??= this._catchUp().finally(() => {
      this.fetching = null;
    });
    await this.fetching;
  }

  async _catchUp() {
    while (this.open && this.latest?.time !== this.newest) await this._fetchNewest();
  }

  async _fetchNewest() {
    const time = this.newest;
    const whole = this.kept.get(time) ?? (await api.getResult(this.name, time));
    if (!this.open) return;
    if (!whole) {
      if (this.newest === time) this.newest = this.latest?.time; // it was erased meanwhile
      return;
    }
    this._keep(whole);
    this.latest = whole;
    if (this.page.history.live) await this._render(whole, true);
  }

  _keep(result) {
    this.kept.delete(result.time);
    this.kept.set(result.time, result);
    if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value);
  }

  /** Shows the moment of the slider; null is live. */
  async showMoment(time) {
    this.drawCharts();
    this.requested = time;
    if (time === null) {
      await this._render(this.latest);
      return;
    }
    await this.attempt(async () => {
      const result = this.kept.get(time) ?? (await api.getResult(this.name, time));
      if (!this.open || this.requested !== time) return;
      if (result) this._keep(result);
      await this._render(result);
    });
  }

  /** Shows one result: on the map, as text, and in the views to compare. */
  async _render(result, announce = false) {
    const before = this.shown;
    if (result) this.marks = numberMarks(this.marks, result.sources, this.mapView.span);
    this.shown = result && { ...result, sources: this.marks };
    this.announced ??= this.shown;
    if (announce && before) this.page.announce("map", () => this._changes());
    this.redraw();
    this.tick();
    await this.comparison.show();
  }

  /** The changes since the last announcement. */
  _changes() {
    if (!this.open || !this.page.history.live) return "";
    const before = this.announced;
    this.announced = this.shown;
    return texts.changes(before, this.shown, (source) => this.mapView.where(source), this.kind);
  }

  get layers() {
    const on = (name) => $(`layer-${name}`).checked;
    return {
      heat: on("heat"),
      sensors: on("sensors"),
      attack: on("attack"),
      truth: on("truth") && this.comparison.hasTruth,
    };
  }

  /** Draws the current result again: layers, sensors or the theme changed. */
  redraw() {
    const { kind, layers, shown: result, geometry: space } = this;
    const now = api.now();
    const where = (source) => this.mapView.where(source);
    const truth = this.comparison.truthFor(result);
    const { time, sources = [], map = null } = result ?? {};
    const odds = !result || result.failed || texts.givesOdds(result);
    const sensors = new Map(this.sensors.map((sensor) => [sensor.id, sensor]));
    const label = (source) => texts.brief(source, odds, space);
    const frame = { time, sources, map, truth: truth ?? [], layers, sensors, label };
    this.mapView.show(frame, pictureText(result, space, where, now));
    showEstimate(result, { space, where, now, live: this.page.history.live, truth });
    showZones(this.geometry.zones, result?.zones, kind);
    showKey(layers, kind, odds);
    setVisible($("no-map"), !result);
    if (!result) setText($("no-map"), this._noMapText());
    this._setTitles(result, now);
    this.comparison.redraw();
  }

  _setTitles(result, now) {
    const when = this.page.history.live ? "Live" : "Past";
    setText($("live-caption"), result ? `${when}, ${texts.moment(result.time, now)}: from this frame alone` : "Live");
    document.title = `${result ? `${texts.countName(result)} · ` : ""}${this.name} · Cloakwork`;
  }

  _noMapText() {
    if (this.loading) return "Loading the newest map.";
    if (!this.page.history.live) return "No map of that moment is stored.";
    const heard = this.sensors.filter((sensor) => sensor.last_seen !== null).length;
    return (
      "No map yet. The first one appears when the sensors have sent their readings: one frame every " +
      `${texts.duration(this.info.period_ms)}. ${heard} of ${texts.count(this.geometry.sensors.length, "sensor")} heard so far.`
    );
  }

  drawHealth() {
    const now = api.now();
    this.sensors = assessSensors(this.health, this.geometry, this.info, now);
    this.page.table.show(this.sensors, now, this.info.unit, $("only-bad").checked);
    setText($("sensors-summary"), summary(this.sensors));
    showService($("service"), this.health);
    showProblems($("problems"), this.health, this.sensors, now);
    showPrivacy(this.info, this.kind, this.sensors, now - this.page.history.range);
    this.redraw();
    this.tick();
  }

  /** Draws the charts soon, once for many changes. */
  drawCharts() {
    clearTimeout(this.chartTimer);
    this.chartTimer = setTimeout(() => {
      if (!this.open) return;
      const { range, at } = this.page.history;
      const now = api.now();
      drawCharts(this.results, { info: this.info, from: now - range, now, mark: at });
    }, 50);
  }

  /** Updates the age of the map. Called once a second. */
  tick() {
    const now = api.now();
    const { connected, history } = this.page;
    const newest = this.latest?.time ?? null;
    const late = newest !== null && now - newest > 3 * this.info.period_ms + 10_000;
    const past = history.live ? null : (this.shown?.time ?? null);
    const [state, text] = texts.stateText({ connected, newest, late, past, now });
    for (const id of ["state", "board"]) $(id).dataset.state = state;
    setText($("state-text"), text);
    setVisible($("stale"), late && connected !== false);
    if (late) setText($("stale"), texts.staleText(this.sensors, newest, this.info.period_ms, now));
  }
}
