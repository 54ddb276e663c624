/**
 * Applies a specification to the offered nodes. The result is either the matching nodes, best first, or the constraint
 * that left none. Pure.
 */
import {
  applyConstraints,
  bestOffered,
  type ConstraintValue,
  countWithoutLocation,
  type Funnel,
  type NearestNode,
  nearestTo,
  type Unmet,
} from '../executors/constraints.ts';
import type { MarketNode } from '../executors/executor.service.ts';
import { dollars, type SpecConstraint } from './spec-constraints.ts';

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

export type SpecMatch = { survivors: MarketNode[]; funnel: Funnel };

/** Name of the first step of the funnel: offered nodes with enough free GPUs for a rental. */
export const HARD_STATE = 'rentable';

/**
 * `present` is the number of all nodes. `rentable` are the nodes with enough free GPUs for a rental, sorted by price.
 */
export function matchSpec(
  present: number,
  rentable: readonly MarketNode[],
  constraints: readonly SpecConstraint[],
): SpecMatch | NoMatch {
  const { left, funnel, unmet } = applyConstraints(HARD_STATE, rentable, constraints);
  if (rentable.length === 0) return nothingRentable(present);
  return unmet === null ? { survivors: left.toSorted(byChoice), funnel } : noMatch(unmet, funnel);
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
function noMatch(unmet: Unmet<MarketNode, SpecConstraint>, funnel: Funnel): NoMatch {
  const { constraint, before } = unmet;
  const { name, requested } = constraint;
  const best = bestOffered(unmet);
  const withoutLocation = countWithoutLocation(unmet);
  return {
    constraint: name,
    requested,
    best_offered: best,
    candidates_before: before.length,
    funnel: funnel.slice(0, funnel.findIndex(({ remaining }) => remaining === 0) + 1),
    nearest: nearestTo(unmet),
    ...(withoutLocation === null ? {} : { without_location: withoutLocation }),
    message: messageFor(name, requested, best) + locationNote(withoutLocation, before.length),
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
