// Views beside the map: what someone with the data of a whole window can say, and in a simulation the truth.

import * as api from "./api.js";
import { $, say, shown } from "./dom.js";
import { Plan } from "./plan.js";
import { matchTruth } from "./view.js";
import * as words from "./words.js";

const NAME = "With this window's data";

export class Beside {
  constructor(site) {
    this.site = site;
    this.plan = new Plan($("attack-plan"), site.geometry);
    this.hasTruth = false;
    this.truth = null;
    this.attack = null;
    shown($("truth-choice"), false);
  }

  /** Only a simulation knows the truth; elsewhere there is no such choice. */
  async probe() {
    const { info, name } = this.site;
    // a collector that does not offer it may refuse in its own way
    const told = info.truth ?? (await api.getTruth(name).catch(() => null));
    if (!this.site.open) return;
    this.hasTruth = Boolean(told);
    shown($("truth-choice"), this.hasTruth);
  }

  /** Both views for what the site shows now. */
  async show() {
    this.showAttack();
    await this.showTruth();
  }

  showTruth() {
    const { site } = this;
    const time = site.shown?.time;
    if (!site.layers.truth || !time) return null;
    return site.attempt(async () => {
      const truth = await api.getTruth(site.name, time);
      if (!site.open || site.shown?.time !== time) return;
      this.truth = { for: time, sources: truth?.sources ?? [] };
      site.redraw();
    });
  }

  /** The truth at the time of a result, each with the mark that is nearest; null where it is not shown. */
  truthFor(result) {
    if (!this.site.layers.truth || !result || this.truth?.for !== result.time) return null;
    return matchTruth(this.truth.sources, result.sources, (source, at) => this.site.plan.holds(source, at));
  }

  /** Asks for one view at a time, the last one wanted: each takes the collector a while. */
  async showAttack() {
    const { site } = this;
    const on = site.layers.attack;
    for (const id of ["attack-figure", "told-attack"]) shown($(id), on);
    $("board").classList.toggle("both", on);
    if (!on || this.busy) return;
    this.busy = true;
    try {
      while (site.open && site.layers.attack && site.shown && this.seen !== site.shown.time) {
        const { time } = site.shown;
        if (!this.attack) say($("attack-caption"), `${NAME}: putting all frames together …`);
        await this._ask(time);
        this.seen = time;
      }
    } finally {
      this.busy = false;
    }
  }

  async _ask(time) {
    const { site } = this;
    try {
      this.attack = await api.getAttack(site.name, time);
      if (site.open) this._draw();
    } catch (problem) {
      if (!site.open) return;
      if (problem.status === 401) site.page.trouble(problem);
      else say($("attack-caption"), `${NAME}: not now. ${problem.message}`);
    }
  }

  redraw() {
    if (this.attack && this.site.layers.attack) this._draw();
  }

  _draw() {
    const { attack, site } = this;
    if (!attack) {
      say($("attack-caption"), `${NAME}: nothing to put together yet`);
      say($("told-attack"), "");
      return;
    }
    const { layers } = site;
    const told = words.attackWords(attack, site.info, site.geometry, api.now());
    const frames = Number.isFinite(attack.frames) ? words.count(attack.frames, "frame") : "all frames";
    say($("attack-caption"), `${NAME}: ${frames} put together${attack.cut ? ", the last of them" : ""}, as if nobody had moved`);
    say($("told-attack"), told);
    const sources = attack.sources.map((source, k) => ({ ...source, id: k + 1 }));
    const frame = { time: attack.time, sources, map: attack.map, sensors: new Map(), tag: "attack" };
    const truth = layers.truth && this.truth ? this.truth.sources : [];
    const brief = (source) => words.brief(source, attack.estimator, site.geometry);
    this.plan.show({ ...frame, truth, words: brief, layers: { ...layers, sensors: false } }, told);
  }
}
