// A floor of cells, walls and doors: which cells are next to each other without a wall between them.

const TINY = 1e-9;

/** Cells of a floor plan or of a plane, numbered like the collector's places. */
export class FloorGrid {
  constructor(geometry) {
    const { places } = geometry;
    const axes = [0, 1].map((axis) => places.map((at) => at[axis]));
    const [xs, ys] = axes.map((values) => spacing(values, geometry.cell));
    this.places = places;
    this.dx = xs.step;
    this.dy = ys.step;
    this.width = geometry.width ?? xs.high + xs.step / 2;
    this.height = geometry.height ?? ys.high + ys.step / 2;
    this.columns = Math.max(1, Math.round((xs.high - xs.low) / xs.step) + 1);
    this.rows = Math.max(1, Math.round((ys.high - ys.low) / ys.step) + 1);
    this.left = xs.low - xs.step / 2;
    this.bottom = ys.low - ys.step / 2;
    const [right, top] = [this.left + this.columns * this.dx, this.bottom + this.rows * this.dy];
    const around = [[this.left, this.bottom], [right, this.bottom], [right, top], [this.left, top]];
    this.walls = geometry.walls.length ? geometry.walls : around.map((corner, k) => [corner, around[(k + 1) % 4]]);
    this.grid = new Int32Array(this.columns * this.rows).fill(-1);
    places.forEach(([x, y], place) => {
      this.grid[this.column(x) + this.columns * this.row(y)] = place;
    });
    this._openSides();
  }

  column(x) {
    return clamp(Math.floor((x - this.left) / this.dx + TINY), this.columns);
  }

  row(y) {
    return clamp(Math.floor((y - this.bottom) / this.dy + TINY), this.rows);
  }

  /** Number of the place in a column and row, -1 where there is no floor. */
  at(column, row) {
    if (column < 0 || row < 0 || column >= this.columns || row >= this.rows) return -1;
    return this.grid[column + this.columns * row];
  }

  /** Whether a cell and one beside it are floor, without a wall between them. */
  open(c, r, toC, toR) {
    return this._pass[this._between(Math.min(c, toC), Math.min(r, toR), r === toR ? 0 : 1)] > 0 && this.at(toC, toR) >= 0;
  }

  /** The number of the side of a cell on its right (`up` = 0) or above it (`up` = 1). */
  _between(column, row, up) {
    return column < 0 || row < 0 ? -1 : 2 * (column + this.columns * row) + up;
  }

  /** The sides of cells that walls leave open; walls run along them, and end at doors. */
  _openSides() {
    this._pass = new Uint8Array(2 * this.grid.length).map((_, side) => this.grid[side >> 1] >= 0);
    for (const [[ax, ay], [bx, by]] of this.walls) {
      const up = ax === bx ? 0 : 1;
      const [line, low, high] = up ? [ay - this.bottom, ax, bx] : [ax - this.left, ay, by];
      const across = Math.round(line / (up ? this.dy : this.dx)) - 1;
      const along = (at) => Math.round(up ? (at - this.left) / this.dx : (at - this.bottom) / this.dy);
      for (let k = Math.max(0, along(low)); k < along(high); k += 1)
        this._pass[this._between(...(up ? [k, across] : [across, k]), up)] = 0;
    }
  }

  cell([x, y]) {
    return this.column(x) + this.columns * this.row(y);
  }
}

function clamp(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}

function spacing(values, cell) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const distinct = new Set(values.map((value) => value.toFixed(6))).size;
  return { low, high, step: cell ?? ((high - low) / (distinct - 1) || 1) };
}
