// The attacker's view: where someone who kept every reading of a span locates everyone.

import * as api from "./api.js";
import { $, setText, setVisible } from "./elements.js";
import { moment } from "./formats.js";
import { MapView, marksOf } from "./map_view.js";
import * as texts from "./texts.js";

export class AttackerView {
  constructor(site) {
    this.site = site;
    this.mapView = new MapView($("attack-plan"), site.geometry);
    this.attack = null;
  }

  get span() {
    return $("attack-span").value;
  }

  /** Requests one view at a time, the last one asked for: each takes the collector a while. */
  async show() {
    const { site } = this;
    const on = site.layers.attack;
    if (!this.attack) this._draw();
    for (const id of ["attack-figure", "attack-text", "attack-choice"]) setVisible($(id), on);
    $("board").classList.toggle("both", on);
    if (!on || this.busy) return;
    this.busy = true;
    const asked = () => `${site.shown?.time} ${this.span}`;
    try {
      while (site.open && site.layers.attack && site.shown && this.seen !== asked()) {
        const next = asked();
        if (this.attack?.span !== this.span) setText($("attack-caption"), "Computing …");
        await this._load(site.shown.time, this.span);
        this.seen = next;
      }
    } finally {
      this.busy = false;
    }
  }

  async _load(time, span) {
    const { site } = this;
    try {
      this.attack = await api.getAttack(site.name, time, span);
      if (site.open) this._draw();
    } catch (problem) {
      if (!site.open) return;
      if (problem.status === 401) site.page.handleError(problem);
      else setText($("attack-caption"), `Unavailable. ${problem.message}`);
    }
  }

  redraw() {
    if (this.attack && this.site.layers.attack) this._draw();
  }

  _draw() {
    const { attack, site } = this;
    if (!attack) {
      setText($("attack-caption"), "No frames yet.");
      setText($("attack-text"), "");
      return;
    }
    const text = texts.attackText(attack, site.info, site.geometry, api.now());
    setText($("attack-caption"), `What stored readings reveal of ${moment(attack.time, api.now())}`);
    setText($("attack-text"), text);
    const marks = marksOf(attack);
    this.mapView.show(
      {
        time: attack.time,
        marks,
        trails: new Map(),
        map: attack.map,
        sensors: new Map(),
        truth: site.truth.match(attack.time, marks),
        label: (mark) => texts.brief(mark, texts.givesOdds(attack), site.geometry),
        layers: { ...site.layers, sensors: false },
      },
      text,
    );
  }
}
