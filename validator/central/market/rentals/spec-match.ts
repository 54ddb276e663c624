/**
 * Applies a specification to the offered nodes. The result is either the matching nodes, best first, or the constraint
 * that left none. Pure.
 */
import type {
  Constrained,
  ConstraintValue,
  Funnel,
  NearestNode,
  Unmet,
} from '../executors/constraints.ts';
import type { MarketNode } from '../executors/executor.service.ts';
import { type Candidate, dollars, type SpecConstraint } from './spec-constraints.ts';

export type NoMatch = {
  constraint: string;
  requested: ConstraintValue | null;
  best_offered: ConstraintValue | null;
  candidates_before: number;
  funnel: Funnel;
  nearest: NearestNode[];
  /** Number of nodes without a location; only for constraints on the place. */
  without_location?: number;
  message: string;
  hint: string;
};

/** `survivors` are the first nodes that meet the specification, best first; `candidates` is the number of all. */
export type SpecMatch = { survivors: MarketNode[]; candidates: number; funnel: Funnel };

/** Name of the first step of the funnel: offered nodes with enough free GPUs for a rental. */
export const HARD_STATE = 'rentable';

/** Maximum number of survivors: of those that a rental may try, and of those that its response lists. */
export const MAX_SURVIVORS = 10;

type UnmetSpec = Pick<Unmet<Candidate, SpecConstraint>, 'constraint' | 'explain'>;

/** Nodes of the market after the constraints. `left` is sorted by price. */
export type FilteredMarket = Omit<Constrained<Candidate, SpecConstraint>, 'unmet'> & {
  unmet: UnmetSpec | null;
};

/** `present` is the number of all nodes. */
export function matchSpec(
  present: number,
  { left, funnel, unmet }: FilteredMarket,
): SpecMatch | NoMatch {
  if (unmet !== null) return noMatch(unmet, funnel);
  if (left.length === 0) return nothingRentable(present);
  // Copied, because the market changes it in place.
  const steps = funnel.map((step) => ({ ...step }));
  return { survivors: bestOf(left, MAX_SURVIVORS), candidates: left.length, funnel: steps };
}

/** Returns the first `count` nodes in the order of `byChoice`. `sorted` is sorted by price. */
function bestOf(sorted: Iterable<Candidate>, count: number): MarketNode[] {
  const best: MarketNode[] = [];
  for (const { node } of sorted) {
    const last = best[count - 1];
    if (last !== undefined && node.price_uusd_per_gpu_hour > last.price_uusd_per_gpu_hour) break;
    const at = best.findLastIndex((other) => byChoice(other, node) < 0) + 1;
    best.splice(at, 0, node);
    best.length = Math.min(best.length, count);
  }
  return best;
}

/** Compares nodes: cheaper per GPU first, then faster download, then more reliable, then lower id. */
export function byChoice(a: MarketNode, b: MarketNode): number {
  return (
    a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour ||
    (b.download_mbps ?? 0) - (a.download_mbps ?? 0) ||
    (b.reliability_permille ?? -1) - (a.reliability_permille ?? -1) ||
    (a.id < b.id ? -1 : 1)
  );
}

/** Describes the failure. The funnel ends with the constraint that left no node. */
function noMatch(unmet: UnmetSpec, funnel: Funnel): NoMatch {
  const { constraint } = unmet;
  const { name, requested } = constraint;
  const reached = funnel.findIndex(({ remaining }) => remaining === 0);
  const before = funnel[reached - 1]?.remaining ?? 0;
  const { best, nearest, withoutLocation } = unmet.explain();
  return {
    constraint: name,
    requested,
    best_offered: best,
    candidates_before: before,
    funnel: funnel.slice(0, reached + 1).map((step) => ({ ...step })),
    nearest,
    ...(withoutLocation === null ? {} : { without_location: withoutLocation }),
    message: messageFor(name, requested, best) + locationNote(withoutLocation, before),
    hint: best === null ? `Omit ${name}.` : constraint.remedy(best),
  };
}

function nothingRentable(present: number): NoMatch {
  return {
    constraint: HARD_STATE,
    requested: null,
    best_offered: null,
    candidates_before: present,
    funnel: [{ constraint: HARD_STATE, remaining: 0 }],
    nearest: [],
    message: 'No node can be rented now',
    hint: 'Retry in a few minutes; GET /executors lists the free nodes.',
  };
}

function messageFor(
  name: string,
  requested: ConstraintValue | null,
  best: ConstraintValue | null,
): string {
  if (name === 'max_price_per_gpu_hour') {
    return `No node within ${dollars(Number(requested))} per GPU-hour; cheapest offered ${dollars(Number(best))}`;
  }
  const request = requested === null ? 'rented whole' : `with ${name} ${requested}`;
  return `No node ${request}; best offered ${best ?? 'unknown'}`;
}

function locationNote(without: number | null, all: number): string {
  if (without === null) return '';
  return without === 1
    ? `; 1 of ${all} nodes has no location`
    : `; ${without} of ${all} nodes have no location`;
}
