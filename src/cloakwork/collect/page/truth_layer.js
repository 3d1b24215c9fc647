// The truth of a simulation, to compare the map with. Only a demonstration has it.

import * as api from "./api.js";

export class TruthLayer {
  constructor(site) {
    Object.assign(this, { site, time: null, sources: [] });
  }

  /** Loads the truth at the time of the result shown. */
  load() {
    const { site } = this;
    const time = site.shown?.time;
    if (!site.layers.truth || !time || time === this.time) return null;
    return site.attempt(async () => {
      const truth = await api.getTruth(site.name, time);
      if (!site.open || site.shown?.time !== time) return;
      Object.assign(this, { time, sources: truth?.sources ?? [] });
      site.redraw();
    });
  }

  /** The truth at a time, each source with its mark; nothing where it is not shown. */
  match(time, marks) {
    return this.site.layers.truth && this.time === time ? matchTruth(this.sources, marks, this.site.geometry.places) : [];
  }
}

/** Pairs of sources and marks, nearest first; a doubt matches none. */
function matchTruth(truth, marks, places) {
  const apart = (a, b) => Math.hypot(...a.map((v, axis) => v - b[axis]));
  const cell = (at) => places.reduce((best, place, k) => (apart(place, at) < apart(places[best], at) ? k : best), 0);
  const pairs = truth.flatMap((person, k) =>
    marks
      .filter((mark) => !mark.doubt && mark.at.length && person.at.length)
      .map((mark) => [apart(person.at, mark.at), k, mark]),
  );
  const matches = truth.map((person) => ({ ...person, matched: null }));
  const taken = new Set();
  for (const [far, k, mark] of pairs.sort((a, b) => a[0] - b[0])) {
    if (matches[k].matched || taken.has(mark.id)) continue;
    Object.assign(matches[k], { matched: mark, apart: far, inside: mark.vicinity.includes(cell(truth[k].at)) });
    taken.add(mark.id);
  }
  return matches;
}
