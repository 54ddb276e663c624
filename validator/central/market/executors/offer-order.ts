/** Sorted lists of offered nodes: their orders, and changes of a list. */
import type { MarketNode } from './market.store.ts';
import type { FilterSubject } from './node-filters.ts';

/** An offered node with enough free GPUs for a rental. Counts are of free GPUs. */
export type Listed = FilterSubject & { node: MarketNode };

export type Order<T = Listed> = (a: T, b: T) => number;

/** Number of changes above which one pass over a list is faster than a search for each change. */
export const MAX_SINGLE_CHANGES = 100;

/** Cheapest first, then by id. */
export function byPrice({ node: a }: Listed, { node: b }: Listed): number {
  const difference = a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour;
  return difference === 0 ? compareIds(a.id, b.id) : difference;
}

/** Most reliable first, nodes without a score last, then by price. */
export function byScore(a: Listed, b: Listed): number {
  const difference = (b.node.reliability_permille ?? -1) - (a.node.reliability_permille ?? -1);
  return difference === 0 ? byPrice(a, b) : difference;
}

function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns the list after the changes. Few changes are applied in place. */
export function listAfter(
  nodes: Listed[],
  removed: readonly Listed[],
  added: readonly Listed[],
  order: Order,
): Listed[] {
  if (removed.length + added.length > MAX_SINGLE_CHANGES) {
    const gone = new Set(removed);
    return [...nodes.filter((node) => !gone.has(node)), ...added].sort(order);
  }
  for (const node of removed) removeFrom(nodes, node, order);
  for (const node of added) nodes.splice(indexIn(nodes, node, order), 0, node);
  return nodes;
}

function removeFrom(nodes: Listed[], node: Listed, order: Order): void {
  const at = indexIn(nodes, node, order);
  if (nodes[at] === node) nodes.splice(at, 1);
}

/** Index of the item in a sorted list, or the index at which it would be inserted. */
export function indexIn<T>(sorted: readonly T[], item: T, order: Order<T>): number {
  return firstIndex(sorted, (other) => order(other, item) >= 0);
}

/** Index of the first item that meets the condition, which all items after it meet too; the length if none does. */
export function firstIndex<T>(sorted: readonly T[], isMet: (item: T) => boolean): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const item = sorted[middle];
    if (item !== undefined && !isMet(item)) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Merges sorted lists. Reads of each list only the items that the caller consumes, and one more. */
export function* merge<T>(lists: readonly Iterable<T>[], order: Order<T>): Generator<T> {
  type Head = { item: T; rest: Iterator<T> };
  // The next item of the result is at the end.
  const lastFirst: Order<Head> = (a, b) => order(b.item, a.item);
  const heads: Head[] = [];
  for (const list of lists) {
    const rest = list[Symbol.iterator]();
    const { done, value } = rest.next();
    if (done !== true) heads.push({ item: value, rest });
  }
  heads.sort(lastFirst);
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    yield head.item;
    const { done, value } = head.rest.next();
    if (done === true) continue;
    const next = { item: value, rest: head.rest };
    heads.splice(indexIn(heads, next, lastFirst), 0, next);
  }
}
