// One site while it is watched: what is known of it, what is shown of it, and what comes in.

import * as api from "./api.js";
import { Beside } from "./beside.js";
import { $, say, shown } from "./dom.js";
import { judge, service, summary, worries } from "./health.js";
import { follow, Plan } from "./plan.js";
import { drawCharts, drawKey, drawPrivacy, drawZones, pictureWords, tell } from "./view.js";
import * as words from "./words.js";

const HEALTH_MS = 10_000;
const AHEAD = 3; // periods by which a result may be ahead of the clock
const MOST_RESULTS = 5000;
const MOST_KEPT = 300; // results with their maps
const CLAIM = ["alpha", "epsilon", "delta", "scope", "window_s", "readings_per_window", "period_ms", "unit"];
const NOTHING = {
  sensors: [],
  problems: [],
  alarms: [],
  broker: null,
  store: null,
  delay_ms: null,
  waiting: 0,
  stands: "",
};

/** `page` is what all sites share: history, table, announce(about, words), connection(good), trouble(problem). */
export class SiteView {
  constructor(info, geometry, page) {
    const told = Object.fromEntries(
      CLAIM.filter((name) => geometry[name] !== undefined).map((name) => [name, geometry[name]]),
    );
    Object.assign(this, { info: { ...info, ...told }, geometry, page, kind: geometry.kind, name: info.name });
    Object.assign(this, {
      health: NOTHING,
      judged: [],
      results: [],
      marks: [],
      shown: null,
      latest: null,
    });
    this.kept = new Map();
    this.open = true;
    this.plan = new Plan($("plan"), geometry);
    this.beside = new Beside(this);
  }

  async start() {
    const { page } = this;
    page.history.prepare(this.info.period_ms);
    page.table.clear();
    this.events = new api.Events(this.name, {
      onResult: (result) => this.attempt(() => this.arrived(result)),
      onOther: () => {
        clearTimeout(this.soon);
        this.soon = setTimeout(() => this.loadHealth(), 500);
      },
      onState: (link) => {
        if (!this.open) return;
        if (link === "open") page.connection(true);
        else this.attempt(() => api.getSites()); // an event stream does not say why it ended: a question does
      },
    });
    this.timer = setInterval(() => this._poll(), HEALTH_MS);
    this._wait(true);
    this.drawHealth();
    await Promise.all([this.loadLatest(), this.loadHealth(), this.loadHistory(), this.beside.probe()]);
    if (!this.open) return;
    this._wait(false);
    this.redraw();
    page.announce("site", () => `${this.name}. ${this.latest ? words.countWords(this.latest) : "No map yet."}`);
  }

  /** Says to those who listen, too, that what is shown is not all there is. */
  _wait(waits) {
    this.waits = waits;
    $("board").ariaBusy = String(waits);
  }

  /** What no event tells; and results, while there are no events. */
  _poll() {
    if (document.hidden) return;
    this.loadHealth();
    if (!this.events.open) this.loadLatest();
  }

  close() {
    this.open = false;
    this.events?.close();
    clearInterval(this.timer);
    this.plan.close();
    this.beside.plan.close();
  }

  /** Everything again, after a time without connection. */
  async refresh() {
    await Promise.all([this.loadLatest(), this.loadHealth(), this.loadHistory()]);
  }

  /** Runs what may fail for want of a connection; answers that come after the site was left are for nobody. */
  async attempt(work) {
    try {
      return await work();
    } catch (problem) {
      if (this.open) this.page.trouble(problem);
      return undefined;
    }
  }

  loadLatest() {
    return this.attempt(async () => {
      const latest = await api.getLatest(this.name);
      this.page.connection(true);
      if (!this.open) return;
      if (latest) await this.arrived(latest);
      else await this._render(null);
    });
  }

  loadHealth() {
    return this.attempt(async () => {
      const health = await api.getHealth(this.name);
      this.page.connection(true);
      if (!this.open) return;
      const all = (told) => told.sensors.reduce((sum, one) => sum + (one.alarms ?? 0), 0);
      const alarms = all(health) - all(this.health);
      if (alarms > 0 && this.health !== NOTHING) this.page.announce("alarm", () => "A new alarm.");
      this.health = health;
      this.drawHealth();
    });
  }

  loadHistory() {
    return this.attempt(async () => {
      const { history } = this.page;
      // one window more than is shown: the budget chart counts back
      const since = Math.max(0, Math.floor(api.now() - history.range - 1000 * this.info.window_s));
      const results = await api.getResults(this.name, since, null, MOST_RESULTS);
      if (!this.open) return;
      this.results = results;
      history.set(results.filter((one) => one.time >= api.now() - history.range));
      this.drawCharts();
    });
  }

  /** A result has come, by an event or because it was asked for; of many at once only the newest is drawn. */
  async arrived(result) {
    if (!this.open || words.failed(result)) return; // one device can make frames that fail: they hide no others
    const { map, ...rest } = result;
    if (!this.results.some((one) => one.time === rest.time)) {
      this.results = [...this.results, rest].sort((a, b) => a.time - b.time).slice(-MOST_RESULTS);
    }
    this.page.history.add(rest);
    this.drawCharts();
    if (map) this._keep(result);
    const wrong = this.newest > api.now() + AHEAD * this.info.period_ms; // of a clock that was set right since
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
      this.newest = this.latest?.time; // it was erased meanwhile
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

  /** Where the slider stands: null is live. */
  async showMoment(time) {
    this.drawCharts();
    this.wanted = time;
    if (time === null) {
      await this._render(this.latest);
      return;
    }
    await this.attempt(async () => {
      const result = this.kept.get(time) ?? (await api.getResult(this.name, time));
      if (!this.open || this.wanted !== time) return;
      if (result) this._keep(result);
      await this._render(result);
    });
  }

  /** Shows one result everywhere: on the plan, in words, and in the views beside it. */
  async _render(result, speak = false) {
    const before = this.shown;
    if (result) this.marks = follow(this.marks, result.sources, this.plan.span);
    this.shown = result && { ...result, sources: this.marks };
    this.spoken ??= this.shown;
    if (speak && before) this.page.announce("map", () => this._news());
    this.redraw();
    this.tick();
    await this.beside.show();
  }

  /** What changed since it was last said. */
  _news() {
    if (!this.open || !this.page.history.live) return "";
    const before = this.spoken;
    this.spoken = this.shown;
    return words.changes(before, this.shown, (source) => this.plan.where(source), this.kind);
  }

  get layers() {
    const on = (name) => $(`layer-${name}`).checked;
    return {
      heat: on("heat"),
      sensors: on("sensors"),
      attack: on("attack"),
      truth: on("truth") && this.beside.hasTruth,
    };
  }

  /** Draws what is known once more: layers, sensors or the theme changed. */
  redraw() {
    const { kind, layers, shown: result } = this;
    const today = api.now();
    const where = (source) => this.plan.where(source);
    const truth = this.beside.truthFor(result);
    const { time, sources = [], map = null, estimator } = result ?? {};
    const sensors = new Map(this.judged.map((one) => [one.id, one]));
    const space = this.geometry;
    const brief = (source) => words.brief(source, estimator, space);
    const frame = { time, sources, map, truth: truth ?? [], layers, sensors, words: brief };
    this.plan.show(frame, pictureWords(result, space, where, today));
    tell(result, { space, where, today, live: this.page.history.live, truth });
    drawZones(this.geometry.zones, result?.zones, kind);
    drawKey(layers, kind, !estimator || words.givesOdds(estimator));
    shown($("nothing"), !result);
    if (!result) say($("nothing"), this._nothing());
    this._name(result, today);
    this.beside.redraw();
  }

  _name(result, today) {
    const when = this.page.history.live ? "Live" : "Past";
    say($("live-caption"), result ? `${when}, ${words.moment(result.time, today)}: from this frame alone` : "Live");
    const head = result ? `${words.countWords(result).split(/,| found/)[0]} · ` : "";
    document.title = `${head}${this.name} · Cloakwork`;
  }

  _nothing() {
    if (this.waits) return "Asking the collector for the newest map.";
    if (!this.page.history.live) return "No map of that moment is kept.";
    const heard = this.judged.filter((one) => one.last_seen !== null).length;
    return (
      "No map yet. The first one comes when the sensors have sent their readings: one frame every " +
      `${words.duration(this.info.period_ms)}. ${heard} of ${words.count(this.geometry.sensors.length, "sensor")} heard so far.`
    );
  }

  drawHealth() {
    const today = api.now();
    this.judged = judge(this.health, this.geometry, this.info, today);
    this.page.table.show(this.judged, today, this.info.unit ?? "", $("only-bad").checked);
    say($("sensors-words"), summary(this.judged));
    service($("service"), this.health);
    worries($("worries"), this.health, today);
    drawPrivacy(this.info, this.kind, this.judged, today - this.page.history.range);
    this.redraw();
    this.tick();
  }

  /** Soon, and once for many changes. */
  drawCharts() {
    clearTimeout(this.chartTimer);
    this.chartTimer = setTimeout(() => {
      if (!this.open) return;
      const { range, at } = this.page.history;
      const today = api.now();
      drawCharts(this.results, { info: this.info, from: today - range, today, mark: at });
    }, 50);
  }

  /** How old is what is shown? Called once a second. */
  tick() {
    const today = api.now();
    const { connected, history } = this.page;
    const newest = this.latest?.time ?? null;
    const late = newest !== null && today - newest > 3 * this.info.period_ms + 10_000;
    const past = history.live ? null : (this.shown?.time ?? null);
    const [now, said] = words.stateWords({ connected, newest, late, past, today });
    for (const id of ["state", "board"]) $(id).dataset.state = now;
    say($("state-words"), said);
    shown($("old"), late && connected !== false);
    if (late) say($("old"), words.oldWords(this.judged, newest, this.info.period_ms, today));
  }
}
