// A floor of cells, walls and doors: walking distances between cells, the room of each cell, and outlines.

const MOST_CELLS = 60_000; // beyond, vicinities are plain circles and rooms have no names
const TINY = 1e-9;

/** Cells of a floor plan or of a plane, numbered like the collector's places. */
export class FloorGrid {
  constructor(geometry) {
    const { places } = geometry;
    const [xs, ys] = [0, 1].map((axis) =>
      spacing(
        places.map((at) => at[axis]),
        geometry.cell,
      ),
    );
    this.places = places;
    this.dx = xs.step;
    this.dy = ys.step;
    this.width = geometry.width ?? geometry.size?.[0] ?? xs.high + xs.step / 2;
    this.height = geometry.height ?? geometry.size?.[1] ?? ys.high + ys.step / 2;
    this.columns = Math.max(1, Math.round((xs.high - xs.low) / xs.step) + 1);
    this.rows = Math.max(1, Math.round((ys.high - ys.low) / ys.step) + 1);
    this.left = xs.low - xs.step / 2;
    this.bottom = ys.low - ys.step / 2;
    this.walls = geometry.walls ?? [];
    this.doors = geometry.doors ?? [];
    this.small = places.length <= MOST_CELLS;
    this.grid = new Int32Array(this.columns * this.rows).fill(-1);
    places.forEach(([x, y], place) => {
      this.grid[this.column(x) + this.columns * this.row(y)] = place;
    });
    this._open();
    this.room = this.small ? this._rooms() : null;
    this.roomNames = this.room ? this._names() : [];
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

  /** Whether a person can step from a cell to the one on its right (`up` = 0) or above it (`up` = 1). */
  passes(column, row, up) {
    return this._pass[2 * (column + this.columns * row) + up] > 0;
  }

  _open() {
    // 0: a wall, 1: a door, 2: nothing between
    this._pass = new Uint8Array(2 * this.grid.length);
    for (let row = 0; row < this.rows; row += 1) {
      for (let column = 0; column < this.columns; column += 1) {
        const here = this.at(column, row);
        for (const up of [0, 1]) {
          const there = this.at(column + 1 - up, row + up);
          if (here >= 0 && there >= 0) this._pass[2 * (column + this.columns * row) + up] = 2;
        }
      }
    }
    if (!this.small) return;
    for (const wall of this.walls) this._across(wall, () => 0);
    // a door may be a part of a wall, or the gap between two
    for (const door of this.doors) this._across(door, () => 1);
  }

  _across(segment, change) {
    const [[ax, ay], [bx, by]] = segment;
    const columns = [this.column(Math.min(ax, bx)) - 1, this.column(Math.max(ax, bx)) + 1];
    const rows = [this.row(Math.min(ay, by)) - 1, this.row(Math.max(ay, by)) + 1];
    for (let row = Math.max(0, rows[0]); row <= Math.min(this.rows - 1, rows[1]); row += 1) {
      for (let column = Math.max(0, columns[0]); column <= Math.min(this.columns - 1, columns[1]); column += 1) {
        for (const up of [0, 1]) {
          const [here, there] = [this.at(column, row), this.at(column + 1 - up, row + up)];
          if (here < 0 || there < 0 || !crosses(this.places[here], this.places[there], segment)) continue;
          const k = 2 * (column + this.columns * row) + up;
          this._pass[k] = change(this._pass[k]);
        }
      }
    }
  }

  /** Walkable neighbours as [column, row, whether through a door]. */
  *_neighbours(column, row) {
    const steps = [
      [column + 1, row, column, row, 0],
      [column - 1, row, column - 1, row, 0],
      [column, row + 1, column, row, 1],
      [column, row - 1, column, row - 1, 1],
    ];
    for (const [toColumn, toRow, c, r, up] of steps) {
      if (this.at(toColumn, toRow) < 0 || c < 0 || r < 0) continue;
      const pass = this._pass[2 * (c + this.columns * r) + up];
      if (pass) yield [toColumn, toRow, pass === 1];
    }
  }

  _rooms() {
    const room = new Int32Array(this.grid.length).fill(-1);
    let number = 0;
    for (let start = 0; start < this.grid.length; start += 1) {
      if (this.grid[start] < 0 || room[start] >= 0) continue;
      const left = [start];
      room[start] = number;
      while (left.length) {
        const here = left.pop();
        for (const [column, row, door] of this._neighbours(here % this.columns, Math.floor(here / this.columns))) {
          const there = column + this.columns * row;
          if (door || room[there] >= 0) continue;
          room[there] = number;
          left.push(there);
        }
      }
      number += 1;
    }
    return room;
  }

  /** "left", "upper right" ... for each room; a number where two would have the same name. */
  _names() {
    const sums = [];
    this.room.forEach((room, cell) => {
      if (room < 0) return;
      sums[room] ??= [0, 0, 0];
      sums[room][0] += cell % this.columns;
      sums[room][1] += Math.floor(cell / this.columns);
      sums[room][2] += 1;
    });
    if (sums.length < 2) return [];
    const names = sums.map(([columns, rows, cells]) => {
      const [x, y] = [(columns / cells + 0.5) / this.columns, (rows / cells + 0.5) / this.rows];
      const parts = [y > 0.58 ? "upper" : y < 0.42 ? "lower" : "", x > 0.58 ? "right" : x < 0.42 ? "left" : ""];
      return parts.filter(Boolean).join(" ") || "middle";
    });
    return names.map((name, room) =>
      names.indexOf(name) === names.lastIndexOf(name) ? `${name} room` : `room ${room + 1}`,
    );
  }

  /** Name of the room at a point, or nothing where there is only one. */
  roomAt(x, y) {
    if (!this.roomNames.length) return "";
    return this.roomNames[this.room[this.column(x) + this.columns * this.row(y)]] ?? "";
  }

  /** Cells within a walking distance; steps go along the axes. */
  near(x, y, distance) {
    const start = this.column(x) + this.columns * this.row(y);
    const found = new Map([[start, 0]]);
    let edge = [start];
    while (edge.length) {
      const next = [];
      for (const here of edge) {
        const column = here % this.columns;
        for (const [c, r] of this._neighbours(column, Math.floor(here / this.columns))) {
          const far = found.get(here) + (c === column ? this.dy : this.dx);
          const there = c + this.columns * r;
          if (far > distance || far >= (found.get(there) ?? Infinity) - TINY) continue;
          found.set(there, far);
          next.push(there);
        }
      }
      edge = next;
    }
    return found;
  }

  /** The outline of the floor, as segments in metres. */
  outline() {
    const segments = [];
    for (let row = -1; row < this.rows; row += 1) {
      for (let column = -1; column < this.columns; column += 1) {
        const here = this.at(column, row) >= 0;
        const [x, y] = [this.left + (column + 1) * this.dx, this.bottom + (row + 1) * this.dy];
        if (here !== this.at(column + 1, row) >= 0)
          segments.push([
            [x, y - this.dy],
            [x, y],
          ]);
        if (here !== this.at(column, row + 1) >= 0)
          segments.push([
            [x - this.dx, y],
            [x, y],
          ]);
      }
    }
    return joined(segments);
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

/** Joins segments that continue in the same direction, so that a wall is one line. */
function joined(segments) {
  const kept = new Map();
  const key = ([x, y]) => `${Math.round(x * 1e4)} ${Math.round(y * 1e4)}`;
  for (const [start, end] of segments.sort((a, b) => a[0][0] - b[0][0] || a[0][1] - b[0][1])) {
    const across = start[1] === end[1] ? "h" : "v";
    const before = kept.get(across + key(start));
    if (before) {
      kept.delete(across + key(start));
      before[1] = end;
      kept.set(across + key(end), before);
    } else kept.set(across + key(end), [start, end]);
  }
  return [...kept.values()];
}
