/** Checks that the folders of a side form layers: no cycle of imports exists between them. */
import type { Import, SourceFile } from './imports.ts';

/**
 * Files of schemas and states. They may be imported from everywhere, so imports of them are ignored. Their own imports
 * count for their folder.
 */
const WORDS = /\.(?:schemas|state)\.ts$/;

/**
 * Imports between places (folders or files): `path:line imports specifier`, by importing place, then by imported place.
 */
type Graph = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/**
 * Returns the shortest import cycle among the places of the folder `side`: its steps, each with its imports. Empty if
 * there is none. A file directly in `side` is a place too; tests are excluded.
 */
export function ringIn(side: string, files: readonly SourceFile[]): string[] {
  const graph = graphOf(side, files);
  const edges = [...graph].flatMap(([from, targets]) =>
    [...targets].map(([to, imports]) => ({ from, to, imports })),
  );
  for (const { from, to } of edges.toSorted((a, b) => a.imports.length - b.imports.length)) {
    const back = shortestWay(graph, to, from);
    if (back === null) continue;
    return [from, ...back]
      .slice(0, -1)
      .flatMap((place, at) => graph.get(place)?.get(back[at] ?? '') ?? []);
  }
  return [];
}

/** Builds the graph. `nested`: folders inside other folders that count as places. */
function graphOf(
  side: string,
  files: readonly SourceFile[],
  nested: readonly string[] = [],
): Graph {
  const graph = new Map<string, Map<string, string[]>>();
  for (const { path, imports } of files) {
    const from = path.endsWith('.test.ts') ? null : placeOf(side, path, nested);
    if (from === null) continue;
    const targets = graph.get(from) ?? new Map<string, string[]>();
    graph.set(from, targets);
    for (const found of imports) {
      const to = placeMeant(side, found, nested);
      if (to === null || to === from) continue;
      targets.set(to, [
        ...(targets.get(to) ?? []),
        `${path}:${found.line} imports ${found.specifier}`,
      ]);
    }
  }
  return graph;
}

function placeMeant(side: string, { target }: Import, nested: readonly string[]): string | null {
  return target === null || WORDS.test(target) ? null : placeOf(side, target, nested);
}

/** Returns the folder in `side` that contains the file, or the file itself if it is directly in `side`. */
function placeOf(side: string, path: string, nested: readonly string[]): string | null {
  if (!path.startsWith(side)) return null;
  const rest = path.slice(side.length);
  return nested.find((folder) => rest.startsWith(`${folder}/`)) ?? rest.split('/', 1)[0] ?? null;
}

/** Returns the places on the shortest path from `start` to `end`, both included; null if there is no path. */
function shortestWay(graph: Graph, start: string, end: string): string[] | null {
  const ways = new Map([[start, [start]]]);
  for (const [place, way] of ways) {
    if (place === end) return way;
    for (const next of graph.get(place)?.keys() ?? []) {
      if (!ways.has(next)) ways.set(next, [...way, next]);
    }
  }
  return null;
}

/**
 * Returns imports that violate `order` (each entry may import all that follow), as `path:line imports specifier`. A
 * file directly in `side` that `order` does not list is part of the composition and may import everything.
 */
export function upwardIn(
  side: string,
  order: readonly string[],
  files: readonly SourceFile[],
): string[] {
  const rank = (place: string) => {
    const at = order.indexOf(place);
    return at < 0 && !place.endsWith('.ts') ? Number.POSITIVE_INFINITY : at;
  };
  const nested = order.filter((place) => place.includes('/'));
  return [...graphOf(side, files, nested)].flatMap(([from, targets]) =>
    [...targets].flatMap(([to, imports]) =>
      rank(from) === Number.POSITIVE_INFINITY || rank(to) < rank(from) ? imports : [],
    ),
  );
}
