/** Nodes by cells of one degree of latitude and longitude, for searches by distance. Pure. */
import type { Listed } from './offer-order.ts';
import { type Coordinates, MILES_PER_DEGREE } from './place-constraints.ts';

/** A circle on the earth. */
export type Area = Coordinates & { miles: number };

export type PlaceGrid = {
  add(node: Listed): void;
  remove(node: Listed): void;
  /** Every node in the circle, and some nodes near it. Nodes without coordinates are in no circle. */
  near(area: Area): Iterable<Listed>;
};

const COLUMNS = 360;
const POLE = 90;
/** Margin for rounding, in degrees. */
const MARGIN = 1e-6;

/** Cells whose rows and columns are in these ranges; both ends are included. Columns continue above the last one. */
type Box = { south: number; north: number; west: number; columns: number };

export function createPlaceGrid(): PlaceGrid {
  const cells = new Map<number, Set<Listed>>();

  function* near(area: Area): Generator<Listed> {
    const box = boxAround(area);
    const inBox = (box.north - box.south + 1) * box.columns;
    // A large circle covers more cells than there are cells with nodes.
    if (inBox > cells.size) {
      for (const [key, nodes] of cells) if (isInBox(key, box)) yield* nodes;
      return;
    }
    for (let row = box.south; row <= box.north; row += 1) {
      for (let column = 0; column < box.columns; column += 1) {
        yield* cells.get(keyOf(row, (box.west + column) % COLUMNS)) ?? [];
      }
    }
  }

  return {
    add(node) {
      const key = cellOf(node);
      if (key === null) return;
      const nodes = cells.get(key) ?? new Set();
      cells.set(key, nodes.add(node));
    },
    remove(node) {
      const key = cellOf(node);
      if (key === null) return;
      const nodes = cells.get(key);
      nodes?.delete(node);
      if (nodes?.size === 0) cells.delete(key);
    },
    near,
  };
}

function cellOf({ lat, lon }: Listed): number | null {
  return lat === null || lon === null ? null : keyOf(rowOf(lat), columnOf(lon));
}

function keyOf(row: number, column: number): number {
  return row * COLUMNS + column;
}

function rowOf(lat: number): number {
  return Math.floor(lat + POLE);
}

function columnOf(lon: number): number {
  return (((Math.floor(lon) + COLUMNS / 2) % COLUMNS) + COLUMNS) % COLUMNS;
}

function isInBox(key: number, { south, north, west, columns }: Box): boolean {
  const row = Math.floor(key / COLUMNS);
  const column = key % COLUMNS;
  return row >= south && row <= north && (column - west + COLUMNS) % COLUMNS < columns;
}

function boxAround({ lat, lon, miles }: Area): Box {
  const height = miles / MILES_PER_DEGREE + MARGIN;
  const south = rowOf(Math.max(lat - height, -POLE));
  const north = rowOf(Math.min(lat + height, POLE));
  const width = halfWidth(lat, height);
  if (width === null) return { south, north, west: 0, columns: COLUMNS };
  const columns = Math.floor(lon + width) - Math.floor(lon - width) + 1;
  return { south, north, west: columnOf(lon - width), columns: Math.min(columns, COLUMNS) };
}

/** Largest difference of longitudes in the circle, in degrees; null for a circle that contains a pole. */
function halfWidth(lat: number, height: number): number | null {
  if (Math.abs(lat) + height >= POLE) return null;
  const radians = Math.PI / 180;
  const sine = Math.sin(height * radians) / Math.cos(lat * radians);
  return Math.asin(Math.min(1, sine)) / radians + MARGIN;
}
