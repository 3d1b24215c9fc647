// A floor of cells, walls and doors: walking distances and ways between cells.

const MOST_CELLS = 60_000; // beyond, ways are straight
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
    this.doors = geometry.doors;
    this.small = places.length <= MOST_CELLS;
    this.grid = new Int32Array(this.columns * this.rows).fill(-1);
    places.forEach(([x, y], place) => {
      this.grid[this.column(x) + this.columns * this.row(y)] = place;
    });
    this._open();
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

  /** Whether a cell is open to the one on its right (`up` = 0) or above it (`up` = 1). */
  passes(column, row, up) {
    return this._pass[2 * (column + this.columns * row) + up] > 0;
  }

  _open() {
    this._pass = new Uint8Array(2 * this.grid.length);
    for (let row = 0; row < this.rows; row += 1) {
      for (let column = 0; column < this.columns; column += 1) {
        const here = this.at(column, row);
        for (const up of [0, 1]) {
          const there = this.at(column + 1 - up, row + up);
          if (here >= 0 && there >= 0) this._pass[2 * (column + this.columns * row) + up] = 1;
        }
      }
    }
    if (!this.small) return;
    for (const wall of this.walls) this._across(wall, 0);
    // a door may be a part of a wall, or the gap between two
    for (const door of this.doors) this._across(door, 1);
  }

  _across(segment, passes) {
    const [[ax, ay], [bx, by]] = segment;
    const columns = [this.column(Math.min(ax, bx)) - 1, this.column(Math.max(ax, bx)) + 1];
    const rows = [this.row(Math.min(ay, by)) - 1, this.row(Math.max(ay, by)) + 1];
    for (let row = Math.max(0, rows[0]); row <= Math.min(this.rows - 1, rows[1]); row += 1) {
      for (let column = Math.max(0, columns[0]); column <= Math.min(this.columns - 1, columns[1]); column += 1) {
        for (const up of [0, 1]) {
          const [here, there] = [this.at(column, row), this.at(column + 1 - up, row + up)];
          if (here < 0 || there < 0 || !crosses(this.places[here], this.places[there], segment)) continue;
          this._pass[2 * (column + this.columns * row) + up] = passes;
        }
      }
    }
  }

  /** Walkable neighbours as [column, row]. */
  *_neighbours(column, row) {
    const steps = [
      [column + 1, row, column, row, 0],
      [column - 1, row, column - 1, row, 0],
      [column, row + 1, column, row, 1],
      [column, row - 1, column, row - 1, 1],
    ];
    for (const [toColumn, toRow, c, r, up] of steps) {
      if (this.at(toColumn, toRow) < 0 || c < 0 || r < 0) continue;
      if (this.passes(c, r, up)) yield [toColumn, toRow];
    }
  }

  /** The cell of a point. */
  cell([x, y]) {
    return this.column(x) + this.columns * this.row(y);
  }

  /** Whether a straight line crosses no wall. */
  clear(from, to) {
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const steps = Math.ceil((4 * Math.hypot(dx, dy)) / Math.min(this.dx, this.dy));
    const step = (c, r, toC, toR) =>
      (c === toC && r === toR) || this.passes(Math.min(c, toC), Math.min(r, toR), r === toR ? 0 : 1);
    let [column, row] = [this.column(from[0]), this.row(from[1])];
    for (let k = 1; k <= steps; k += 1) {
      const [c, r] = [this.column(from[0] + (k / steps) * dx), this.row(from[1] + (k / steps) * dy)];
      // a step across a corner needs both ways around it
      if (!(step(column, row, c, row) && step(c, row, c, r) && step(column, row, column, r) && step(column, r, c, r)))
        return false;
      [column, row] = [c, r];
    }
    return true;
  }

  /** The corners of a way on foot between two points, never through a wall. */
  way(from, to) {
    if (!this.small || this.clear(from, to)) return [from, to];
    const [start, end] = [this.cell(from), this.cell(to)];
    const before = new Map([[start, null]]);
    for (const here of before.keys()) {
      if (here === end) break;
      for (const [column, row] of this._neighbours(here % this.columns, Math.floor(here / this.columns))) {
        const there = column + this.columns * row;
        if (!before.has(there)) before.set(there, here);
      }
    }
    if (!before.has(end)) return [from, to];
    const points = [to];
    for (let cell = before.get(end); cell !== null && cell !== start; cell = before.get(cell))
      points.unshift(this.places[this.grid[cell]]);
    const corners = [from];
    while (points.length) {
      const seen = points.findLastIndex((point) => this.clear(corners.at(-1), point));
      corners.push(points.splice(0, Math.max(0, seen) + 1).at(-1));
    }
    return corners;
  }
}

function clamp(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}

function spacing(values, cell) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const distinct = [...new Set(values.map((value) => Math.round(value * 1e6)))].sort((a, b) => a - b);
  let step = cell ?? Infinity;
  if (!cell)
    for (let k = 1; k < distinct.length; k += 1) step = Math.min(step, (distinct[k] - distinct[k - 1]) / 1e6);
  return { low, high, step: Number.isFinite(step) ? step : 1 };
}

/** Whether the line between two centres touches a wall; the model has the same rule. */
function crosses(start, end, [a, b]) {
  const side = (p, q, r) => (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
  if (side(start, end, a) * side(start, end, b) > 1e-12) return false;
  return side(a, b, start) >= -1e-12 !== side(a, b, end) >= -1e-12;
}
