// Views to compare the map with: the result of a whole window, and in a simulation the truth.

import * as api from "./api.js";
import { $, setText, setVisible } from "./elements.js";
import { MapView } from "./map_view.js";
import * as texts from "./texts.js";

const NAME = "With this window's data";

export class ComparisonView {
  constructor(site) {
    this.site = site;
    this.mapView = new MapView($("attack-plan"), site.geometry);
    this.hasTruth = false;
    this.truth = null;
    this.attack = null;
    setVisible($("truth-choice"), false);
  }

  /** Only a simulation knows the truth; elsewhere the choice is hidden. */
  async probe() {
    const truth = await api.getTruth(this.site.name).catch(() => null);
    if (!this.site.open) return;
    this.hasTruth = truth !== null;
    setVisible($("truth-choice"), this.hasTruth);
  }

  /** Updates both views to the result that the site shows. */
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

  /** The truth at the time of a result, each source with its nearest mark; null where it is not shown. */
  truthFor(result) {
    if (!this.site.layers.truth || !result || this.truth?.for !== result.time) return null;
    return matchTruth(this.truth.sources, result.sources, (source, at) => this.site.mapView.holds(source, at));
  }

  /** Requests one window at a time, the last one asked for: each takes the collector a while. */
  async showAttack() {
    const { site } = this;
    const on = site.layers.attack;
    for (const id of ["attack-figure", "estimate-attack"]) setVisible($(id), on);
    $("board").classList.toggle("both", on);
    if (!on || this.busy) return;
    this.busy = true;
    try {
      while (site.open && site.layers.attack && site.shown && this.seen !== site.shown.time) {
        const { time } = site.shown;
        if (!this.attack) setText($("attack-caption"), `${NAME}: combining all frames …`);
        await this._load(time);
        this.seen = time;
      }
    } finally {
      this.busy = false;
    }
  }

  async _load(time) {
    const { site } = this;
    try {
      this.attack = await api.getAttack(site.name, time);
      if (site.open) this._draw();
    } catch (problem) {
      if (!site.open) return;
      if (problem.status === 401) site.page.handleError(problem);
      else setText($("attack-caption"), `${NAME}: unavailable. ${problem.message}`);
    }
  }

  redraw() {
    if (this.attack && this.site.layers.attack) this._draw();
  }

  _draw() {
    const { attack, site } = this;
    if (!attack) {
      setText($("attack-caption"), `${NAME}: no frames yet`);
      setText($("estimate-attack"), "");
      return;
    }
    const { layers } = site;
    const text = texts.attackText(attack, site.info, site.geometry, api.now());
    const frames = `${attack.cut ? "the last " : ""}${texts.count(attack.frames, "frame")}`;
    setText($("attack-caption"), `${NAME}: ${frames} combined, as if no one had moved`);
    setText($("estimate-attack"), text);
    const sources = attack.sources.map((source, k) => ({ ...source, id: k + 1 }));
    const frame = { time: attack.time, sources, map: attack.map, sensors: new Map(), tag: "attack" };
    const truth = layers.truth && this.truth ? this.truth.sources : [];
    const label = (source) => texts.brief(source, texts.givesOdds(attack), site.geometry);
    this.mapView.show({ ...frame, truth, label, layers: { ...layers, sensors: false } }, text);
  }
}

/** Each simulated source with the found source that matches it, nearest pairs first. */
export function matchTruth(truth, sources, holds) {
  const pairs = truth.flatMap((person, k) =>
    sources
      .filter((source) => source.at.length && person.at.length)
      .map((source) => [Math.hypot(...person.at.map((v, axis) => v - source.at[axis])), k, source]),
  );
  const matches = truth.map((person) => ({ ...person, matched: null, apart: null }));
  const taken = new Set();
  for (const [far, k, source] of pairs.sort((a, b) => a[0] - b[0])) {
    if (matches[k].matched || taken.has(source.id)) continue;
    Object.assign(matches[k], { matched: source, apart: far, inside: holds(source, truth[k].at) });
    taken.add(source.id);
  }
  return matches;
}
