/**
 * Applies constraints to the offered nodes and caches the results, because clients repeat their requests. For a
 * repeated request, only nodes that changed are filtered again.
 */
import {
  applyConstraints,
  type Constrained,
  type Constraint,
  countPassed,
  type Explanation,
  explain,
  type Funnel,
} from './constraints.ts';
import { applyChange, type Listed, type OfferChange, type Offers } from './offers.ts';

/** Limits of the cache: number of results, and of nodes in all results. */
const MAX_RESULTS = 200;
const MAX_CACHED_NODES = 1_000_000;

/** `left` are the nodes that meet every constraint, cheapest first. Changes in place: valid until the next `await`. */
export type Filtered<C extends Constraint<Listed> = Constraint<Listed>> = Constrained<Listed, C>;

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

  function find(offers: Offers, constraints: readonly C[]): CachedResult<C> {
    const { left, funnel, unmet } = applyConstraints<Listed, C>(first, offers.nodes, constraints);
    const reached = unmet === null ? constraints.length : constraints.indexOf(unmet.constraint);
    const nodes = [...(unmet?.before ?? left)];
    return { version: offers.version, constraints, funnel, reached, nodes, explanation: null };
  }

  return (offers: Offers, constraints: readonly C[], key: string | null): Filtered<C> => {
    // Without a constraint there is nothing to cache.
    if (key === null || constraints.length === 0) {
      return applyConstraints(first, offers.nodes, constraints);
    }
    const known = cache.get(key);
    const found = (known && updated(known, offers)) ?? find(offers, constraints);
    keep(key, found);
    return filteredOf(found);
  };
}

function filteredOf<C extends Constraint<Listed>>(found: CachedResult<C>): Filtered<C> {
  const { constraints, funnel, reached, nodes } = found;
  const constraint = constraints[reached];
  if (constraint === undefined) return { left: nodes, funnel, unmet: null };
  const explainOnce = () => {
    found.explanation ??= explain(constraint, nodes);
    return found.explanation;
  };
  return { left: [], funnel, unmet: { constraint, before: nodes, explain: explainOnce } };
}

/** Updates the result; returns null if too much has changed, or another constraint is now the first that leaves none. */
function updated<C extends Constraint<Listed>>(
  cached: CachedResult<C>,
  offers: Offers,
): CachedResult<C> | null {
  const changes = offers.changesSince(cached.version);
  if (changes === null) return null;
  for (const change of changes) follow(cached, change);
  cached.version = offers.version;
  const isSame =
    cached.nodes.length > 0 && (cached.funnel[cached.reached + 1]?.remaining ?? 0) === 0;
  return isSame ? cached : null;
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
