/**
 * Applies constraints to the offered nodes. Caches results for which many nodes had to be examined, because clients
 * repeat their requests. For a repeated request, only nodes that changed are filtered again.
 */
import {
  type Constraint,
  countPassed,
  type Explanation,
  explain,
  type Funnel,
  type Unmet,
} from './constraints.ts';
import {
  isExplainedByIndex,
  type Matched,
  matchesOf,
  matchOffers,
  type OfferMatches,
} from './offer-matches.ts';
import type { Listed } from './offer-order.ts';
import { applyChange, type OfferChange, type Offers } from './offers.ts';

/** Limits of the cache: number of results, and of nodes in all results. */
const MAX_RESULTS = 200;
const MAX_CACHED_NODES = 1_000_000;
/** Number of examined nodes above which a result is cached. */
const MAX_UNCACHED_NODES = 1_000;

/** Valid until the next `await`, because the market changes the lists in place. */
export type Filtered<C extends Constraint<Listed> = Constraint<Listed>> = {
  /** The nodes that meet every constraint. */
  left: OfferMatches;
  funnel: Funnel;
  /** Null if nodes are left, or if there were no nodes to begin with. */
  unmet: Pick<Unmet<Listed, C>, 'constraint' | 'explain'> | null;
};

/** A result with the version of the market from which it was computed. */
type CachedResult<C extends Constraint<Listed>> = {
  version: number;
  constraints: readonly C[];
  funnel: Funnel;
  /** Index of the constraint that left no node; the number of constraints if nodes are left. */
  reached: number;
  /** Nodes that meet the constraints before `reached`. */
  nodes: Listed[];
  /** Why the constraint `reached` left no node; null until it is requested. */
  explanation: Explanation | null;
};

/**
 * Returns the filter. `first` names the first entry of the funnel. Requests with the same constraints pass the same
 * `key`; results without a key are not cached.
 */
export function createOfferFilter<C extends Constraint<Listed>>(first: string) {
  // Least recently used first.
  const cache = new Map<string, CachedResult<C>>();

  function keep(key: string, found: CachedResult<C>): void {
    cache.delete(key);
    cache.set(key, found);
    let nodes = 0;
    for (const { nodes: some } of cache.values()) nodes += some.length;
    for (const [oldest, { nodes: some }] of cache) {
      if (cache.size <= MAX_RESULTS && nodes <= MAX_CACHED_NODES) break;
      nodes -= some.length;
      cache.delete(oldest);
    }
  }

  function cached(key: string, offers: Offers): CachedResult<C> | null {
    const known = cache.get(key);
    if (known === undefined) return null;
    if (!update(known, offers)) {
      cache.delete(key);
      return null;
    }
    keep(key, known);
    return known;
  }

  return (offers: Offers, constraints: readonly C[], key: string | null): Filtered<C> => {
    const known = key === null ? null : cached(key, offers);
    if (known !== null) return filteredOf(known);
    const found = matchOffers(first, offers, constraints);
    if (key === null) return found;
    const keepResult = () => {
      const result = resultOf(found, constraints, offers.version);
      keep(key, result);
      return result;
    };
    if (found.examined > MAX_UNCACHED_NODES) return filteredOf(keepResult());
    if (found.unmet === null || isExplainedByIndex(found.unmet.constraint)) return found;
    const { constraint } = found.unmet;
    const explainAndKeep = () => explanationOf(keepResult(), constraint);
    return { ...found, unmet: { constraint, explain: explainAndKeep } };
  };
}

function resultOf<C extends Constraint<Listed>>(
  { left, funnel, unmet }: Matched<C>,
  constraints: readonly C[],
  version: number,
): CachedResult<C> {
  const reached = unmet === null ? constraints.length : constraints.indexOf(unmet.constraint);
  const nodes = [...(unmet?.before() ?? left.toArray())];
  return { version, constraints, funnel, reached, nodes, explanation: null };
}

function explanationOf<C extends Constraint<Listed>>(
  found: CachedResult<C>,
  constraint: C,
): Explanation {
  found.explanation ??= explain(constraint, found.nodes);
  return found.explanation;
}

function filteredOf<C extends Constraint<Listed>>(found: CachedResult<C>): Filtered<C> {
  const { constraints, funnel, reached, nodes } = found;
  const constraint = constraints[reached];
  if (constraint === undefined) return { left: matchesOf(nodes), funnel, unmet: null };
  const unmet = { constraint, explain: () => explanationOf(found, constraint) };
  return { left: matchesOf([]), funnel, unmet };
}

/** Updates the result; returns false if too much has changed, or another constraint is now the first that leaves none. */
function update(cached: CachedResult<Constraint<Listed>>, offers: Offers): boolean {
  const changes = offers.changesSince(cached.version);
  if (changes === null) return false;
  for (const change of changes) follow(cached, change);
  cached.version = offers.version;
  return cached.nodes.length > 0 && (cached.funnel[cached.reached + 1]?.remaining ?? 0) === 0;
}

function follow(cached: CachedResult<Constraint<Listed>>, change: OfferChange): void {
  const { constraints, funnel, reached, nodes } = cached;
  const passed = countPassed(change.node, constraints);
  for (const stage of funnel.slice(0, passed + 1)) stage.remaining += change.isAdded ? 1 : -1;
  if (passed < reached) return;
  applyChange(nodes, change);
  cached.explanation = explanationAfter(cached, change);
}

/** Returns null if the change may concern the nearest nodes. */
function explanationAfter(
  { constraints, reached, explanation }: CachedResult<Constraint<Listed>>,
  { node, isAdded }: OfferChange,
): Explanation | null {
  const constraint = constraints[reached];
  if (constraint === undefined || explanation === null) return null;
  if (constraint.distance(node) <= explanation.farthest) return null;
  const { withoutLocation } = explanation;
  if (withoutLocation === null || constraint.isLocated?.(node) !== false) return explanation;
  return { ...explanation, withoutLocation: withoutLocation + (isAdded ? 1 : -1) };
}
