// Privacy: the guarantee in words, what is not hidden, and the attacker's view beside the map.

import * as api from "./api.js";
import { $, fill, h, setText, setVisible } from "./elements.js";
import { mapViewIn } from "./map_view.js";
import { brokenText } from "./problems.js";
import * as texts from "./privacy_texts.js";

export class PrivacyView {
  constructor(data) {
    this.data = data;
    this.own = mapViewIn("own-plan", data.geometry, "Map of now");
    this.other = mapViewIn("attack-plan", data.geometry, "The attacker's map");
    setVisible($("attack"), this.own !== null);
  }

  close() {
    for (const view of [this.own, this.other]) view?.close();
  }

  draw(devices) {
    const { info, geometry } = this.data;
    const { kind } = geometry;
    const broken = brokenText(info, devices, api.now());
    const items = (sentences) => sentences.map((sentence) => h("li", null, sentence));
    fill($("guarantee"), items(broken ? [broken] : texts.guarantees(info, kind)));
    $("guarantee").dataset.broken = String(Boolean(broken));
    setVisible($("meaning"), !broken);
    setText($("meaning"), texts.meaning(info, kind));
    const budget = texts.budgetText(info, devices);
    setText($("budget"), budget.text);
    $("budget").dataset.over = String(budget.over);
    fill($("not-hidden"), items(texts.notHidden(info, kind)));
    setText($("longer"), texts.longerText(geometry));
  }

  /** Shows the map and what stored readings reveal of the same moment; one request at a time, the last one asked for. */
  async attack(model) {
    const { data } = this;
    if (!this.own) return;
    if (model) this.own.show({ map: model.result.map, rooms: model.rooms, marks: model.marks });
    if (!data.shown) setText($("attack-caption"), "No frames yet.");
    if (this.busy || !data.shown) return;
    this.busy = true;
    const asked = () => `${data.shown.time} ${$("attack-span").value}`;
    while (data.open && document.body.dataset.route === "privacy" && this.seen !== asked()) {
      const next = asked();
      setText($("attack-caption"), "Computing …");
      await this._load(data.shown.time, $("attack-span").value);
      this.seen = next;
    }
    this.busy = false;
  }

  async _load(time, span) {
    const { data } = this;
    try {
      const attack = await api.getAttack(data.name, time, span);
      if (!data.open) return;
      setText($("attack-caption"), attack ? "The same moment, to the attacker" : "No frames yet.");
      setText($("attack-text"), attack ? texts.attackText(attack, data.info, data.geometry, api.now()) : "");
      this.other.show(attack ? { map: attack.map, marks: attack.sources } : {});
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      if (data.open && problem.status === 401) data.on.error(problem);
      else setText($("attack-caption"), `Unavailable. ${problem.message}`);
    }
  }
}
