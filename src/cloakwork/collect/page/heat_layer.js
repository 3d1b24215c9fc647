// The heat layer: expected sources as colour, smooth inside a room and sharp at walls.

const RAMPS = {
  light: [[255, 214, 140], [245, 150, 60], [205, 66, 28]],
  dark: [[110, 52, 22], [214, 104, 34], [255, 196, 112]],
};
const PIXELS = 90_000; // to paint: fewer a cell on a large floor

/** The value with the full colour: a map that is spread over the whole floor stays pale. */
export function topOf(map) {
  let [most, total] = [0, 0];
  for (const value of map) {
    most = Math.max(most, value);
    total += value;
  }
  return Math.max(most, (20 * total) / map.length) || 1;
}

/** Colour of a share of the top, as [r, g, b, alpha]. */
export function tint(share, dark) {
  const t = Math.min(Math.max(share, 0), 1) ** 0.7;
  const ramp = RAMPS[dark ? "dark" : "light"];
  const at = Math.min(t * 2, 1.999);
  const [from, to] = [ramp[Math.floor(at)], ramp[Math.floor(at) + 1]];
  const mixed = from.map((value, k) => value + (to[k] - value) * (at % 1));
  return [...mixed, 255 * Math.min(1, 1.25 * t) * 0.85];
}

/** Paints a map of a floor onto a canvas that covers its cells. */
export function paint(canvas, floor, map, top, dark) {
  const fine = Math.max(1, Math.min(8, Math.round(Math.sqrt(PIXELS / floor.grid.length))));
  const [width, height] = [floor.columns * fine, floor.rows * fine];
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const tints = Array.from({ length: 256 }, (_, k) => tint(k / 255, dark));
  const coloured = new Set(); // cells, and those beside them
  map.forEach((value, place) => {
    const cell = value < top / 510 ? NaN : floor.cell(floor.places[place]);
    for (const up of [-1, 0, 1]) for (const k of [-1, 0, 1]) if (cell >= 0) coloured.add(cell + k + up * floor.columns);
  });
  for (const cell of coloured) {
    const [column, row] = [cell % floor.columns, Math.floor(cell / floor.columns)];
    if (floor.at(column, row) >= 0) block(image, floor, map, column, row, fine, top, tints);
  }
  context.putImageData(image, 0, 0);
}

/** Paints one cell, blended with its walkable neighbours. */
function block(image, floor, map, column, row, fine, top, tints) {
  const value = (c, r) => map[floor.at(c, r)] ?? 0;
  const here = value(column, row);
  const { height, width } = image;
  const corner = (dc, dr) => {
    const [c, r] = [column + dc, row + dr];
    const [beside, above] = [floor.open(column, row, c, row), floor.open(column, row, column, r)];
    const [a, b] = [beside ? value(c, row) : here, above ? value(column, r) : here];
    const around = beside && above && floor.open(column, r, c, r) && floor.open(c, row, c, r);
    return [a, b, around ? value(c, r) : (a + b) / 2];
  };
  const corners = [corner(-1, -1), corner(1, -1), corner(-1, 1), corner(1, 1)];
  for (let j = 0; j < fine; j += 1) {
    for (let i = 0; i < fine; i += 1) {
      const [u, v] = [(i + 0.5) / fine - 0.5, (j + 0.5) / fine - 0.5];
      const [a, b, c] = corners[(u < 0 ? 0 : 1) + (v < 0 ? 0 : 2)];
      const [p, q] = [Math.abs(u), Math.abs(v)];
      const mixed = here * (1 - p) * (1 - q) + a * p * (1 - q) + b * (1 - p) * q + c * p * q;
      const colour = tints[Math.min(255, Math.round((255 * mixed) / top))];
      // rows of the floor count upwards, rows of an image downwards
      const at = 4 * ((height - 1 - (row * fine + j)) * width + column * fine + i);
      image.data.set(colour, at);
    }
  }
}
