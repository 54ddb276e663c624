/**
 * Applies constraints to the offered nodes with the same result as `applyConstraints`, but examines only those nodes
 * singly about which groups, prices, places and ids do not decide.
 */
import {
  type Constrained,
  type Constraint,
  countPassed,
  type Explanation,
  explain,
  funnelOf,
  MAX_NEAREST,
} from './constraints.ts';
import type { OfferGroup } from './offer-index.ts';
import { byPrice, byScore, firstIndex, type Listed, merge } from './offer-order.ts';
import type { Offers } from './offers.ts';

/** The matching nodes, cheapest first. Valid until the next `await`. */
export type OfferMatches = Iterable<Listed> & {
  readonly length: number;
  /** The same nodes, most reliable first. */
  byScore(): Iterable<Listed>;
  /** All nodes, cheapest first. Faster than iterating over all of them. */
  toArray(): Listed[];
};

export type Matched<C extends Constraint<Listed>> = Omit<Constrained<Listed, C>, 'left'> & {
  left: OfferMatches;
  /** Number of nodes that were examined singly. */
  examined: number;
};

/** Matching nodes in both orders. `isGroup`: the nodes are of one group. */
type Part = {
  isGroup: boolean;
  length: number;
  byPrice(): Iterable<Listed>;
  byScore(): Iterable<Listed>;
};

/** `first` names the first entry of the funnel. */
export function matchOffers<C extends Constraint<Listed>>(
  first: string,
  offers: Offers,
  constraints: readonly C[],
): Matched<C> {
  const counts = constraints.map(() => 0);
  const { parts, examined } = partsOf(offers, constraints, counts);
  const { funnel, reached } = funnelOf(first, offers.nodes.length, constraints, counts);
  const left = joined(constraints.length === 0 ? [wholeOf(offers, parts)] : parts);
  const constraint = constraints[reached];
  if (constraint === undefined) return { left, funnel, unmet: null, examined };
  const earlier = constraints.slice(0, reached);
  const received = () => partsOf(offers, earlier, []).parts;
  const before = () => joined(received()).toArray();
  const explanation = () => explanationOf(constraint, received());
  return { left, funnel, unmet: { constraint, before, explain: explanation }, examined };
}

/** Returns true if the index also spares an explanation the examination of most nodes. */
export function isExplainedByIndex({ index }: Constraint<Listed>): boolean {
  return index?.by === 'group' || (index?.by === 'price' && index.keeps === 'cheaper');
}

/**
 * Examines only the cheapest nodes of each group if the others of the group are equally far from the requested value,
 * or farther.
 */
function explanationOf(constraint: Constraint<Listed>, parts: readonly Part[]): Explanation {
  if (!isExplainedByIndex(constraint)) return explain(constraint, joined(parts).toArray());
  const weights = new Map<Listed, number>();
  const samples = parts.map(({ isGroup, length, byPrice: nodes }) => {
    const first = Iterator.from(nodes())
      .take(isGroup ? MAX_NEAREST : length)
      .toArray();
    const [cheapest] = first;
    if (cheapest !== undefined) weights.set(cheapest, 1 + length - first.length);
    return first;
  });
  return explain(constraint, samples.flat().sort(byPrice), (node) => weights.get(node) ?? 1);
}

/** Returns these nodes, which are sorted by price, as matches. */
export function matchesOf(nodes: readonly Listed[]): OfferMatches {
  return joined([listPart(nodes)]);
}

/** Adds the nodes that meet each constraint, and all before it, to its count. */
function partsOf(
  offers: Offers,
  constraints: readonly Constraint<Listed>[],
  counts: number[],
): { parts: Part[]; examined: number } {
  const narrowed = constraints.findIndex((each) => candidatesOf(each, offers) !== null);
  const decided = narrowed === -1 ? constraints : constraints.slice(0, narrowed);
  const parts: Part[] = [];
  let examined = 0;
  for (const group of offers.index.groups()) {
    const found = partOfGroup(group, decided, counts);
    examined += found.examined;
    if (found.part.length > 0) parts.push(found.part);
  }
  const narrow = constraints[narrowed];
  if (narrow === undefined) return { parts, examined };
  const candidates = [...(candidatesOf(narrow, offers) ?? [])];
  const left = examine(candidates, constraints, narrowed, counts).sort(byPrice);
  return { parts: [listPart(left)], examined: examined + candidates.length };
}

/** Nodes of which every other node does not meet the constraint; null if the constraint has no such index. */
function candidatesOf({ index }: Constraint<Listed>, offers: Offers): Iterable<Listed> | null {
  if (index?.by === 'place') return offers.index.near(index.area);
  return index?.by === 'id' ? offers.index.withIds(index.ids) : null;
}

/** Examines a group up to the first constraint about which only the single nodes decide. */
function partOfGroup(
  group: OfferGroup,
  constraints: readonly Constraint<Listed>[],
  counts: number[],
): { part: Part; examined: number } {
  let from = 0;
  let to = group.byPrice.length;
  const prices: Constraint<Listed>[] = [];
  for (const [at, constraint] of constraints.entries()) {
    const { index, keep } = constraint;
    const [sample] = group.byPrice;
    if (index?.by === 'group') {
      if (sample === undefined || !keep(sample)) return { part: listPart([]), examined: 0 };
    } else if (index?.by === 'price') {
      prices.push(constraint);
      if (index.keeps === 'cheaper')
        to = Math.min(
          to,
          firstIndex(group.byPrice, (x) => !keep(x)),
        );
      else from = Math.max(from, firstIndex(group.byPrice, keep));
      if (from >= to) return { part: listPart([]), examined: 0 };
    } else {
      const nodes = group.byPrice.slice(from, to);
      return { part: listPart(examine(nodes, constraints, at, counts)), examined: nodes.length };
    }
    counts[at] = (counts[at] ?? 0) + to - from;
  }
  return { part: rangePart(group, { from, to }, prices), examined: 0 };
}

/** Returns the nodes that meet every constraint. Counts only for the constraint `begin` and those after it. */
function examine(
  nodes: readonly Listed[],
  constraints: readonly Constraint<Listed>[],
  begin: number,
  counts: number[],
): Listed[] {
  const left: Listed[] = [];
  for (const node of nodes) {
    const passed = countPassed(node, constraints);
    for (let at = begin; at < passed; at += 1) counts[at] = (counts[at] ?? 0) + 1;
    if (passed === constraints.length) left.push(node);
  }
  return left;
}

/** The nodes of a group from one price to another, which are those that meet the constraints on the price. */
function rangePart(
  group: OfferGroup,
  { from, to }: { from: number; to: number },
  prices: readonly Constraint<Listed>[],
): Part {
  const isInRange = (node: Listed) => prices.every(({ keep }) => keep(node));
  return {
    isGroup: true,
    length: to - from,
    *byPrice() {
      for (let at = from; at < to; at += 1) yield group.byPrice[at] as Listed;
    },
    byScore: () => (prices.length === 0 ? group.byScore : group.byScore.values().filter(isInRange)),
  };
}

/** `nodes` are sorted by price. */
function listPart(nodes: readonly Listed[]): Part {
  return {
    isGroup: false,
    length: nodes.length,
    byPrice: () => nodes,
    byScore: () => nodes.toSorted(byScore),
  };
}

function wholeOf({ nodes }: Offers, parts: readonly Part[]): Part {
  return { ...listPart(nodes), byScore: () => joined(parts).byScore() };
}

function joined(parts: readonly Part[]): OfferMatches {
  const inOrder = (of: 'byPrice' | 'byScore') => {
    const lists = parts.map((part) => part[of]());
    const [only = []] = lists;
    return lists.length < 2 ? only : merge(lists, of === 'byPrice' ? byPrice : byScore);
  };
  return {
    length: parts.reduce((sum, { length }) => sum + length, 0),
    [Symbol.iterator]: () => inOrder('byPrice')[Symbol.iterator](),
    byScore: () => inOrder('byScore'),
    toArray: () => parts.flatMap((part) => [...part.byPrice()]).sort(byPrice),
  };
}
