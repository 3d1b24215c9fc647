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

/** The tints of 256 shares, each in one number as an image holds it. */
function packedTints(dark) {
  return new Uint32Array(Uint8ClampedArray.from(Array.from({ length: 256 }, (_, k) => tint(k / 255, dark)).flat()).buffer);
}

/** Paints a map of a floor onto a canvas that covers its cells. */
export function paint(canvas, floor, map, top, dark) {
  const fine = Math.max(1, Math.min(8, Math.round(Math.sqrt(PIXELS / floor.grid.length))));
  const [width, height] = [floor.columns * fine, floor.rows * fine];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = { width, height, data: new Uint32Array(image.data.buffer) };
  const tints = packedTints(dark);
  const coloured = new Uint8Array(floor.grid.length); // cells, and those beside them
  map.forEach((value, place) => {
    if (value < top / 510) return;
    const cell = floor.cell(floor.places[place]);
    for (let up = -1; up <= 1; up += 1) coloured.fill(1, Math.max(0, cell + up * floor.columns - 1), Math.max(0, cell + up * floor.columns + 2));
  });
  for (let cell = coloured.indexOf(1); cell >= 0; cell = coloured.indexOf(1, cell + 1)) {
    const [column, row] = [cell % floor.columns, Math.floor(cell / floor.columns)];
    if (floor.at(column, row) >= 0) block(pixels, floor, map, column, row, fine, top, tints);
  }
  context.putImageData(image, 0, 0);
}

/** Paints one cell, blended with its walkable neighbours. */
function block(pixels, floor, map, column, row, fine, top, tints) {
  const value = (c, r) => map[floor.at(c, r)] ?? 0;
  const here = value(column, row);
  const { height, width, data } = pixels;
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
      // rows of the floor count upwards, rows of an image downwards
      const at = (height - 1 - (row * fine + j)) * width + column * fine + i;
      data[at] = tints[Math.min(255, Math.round((255 * mixed) / top))];
    }
  }
}
