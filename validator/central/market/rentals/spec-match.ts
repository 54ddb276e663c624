/** Applies a specification to the offered nodes: the matches, best first, or the constraint that left none. Pure. */
import type { MarketNode } from '../executors/executor.service.ts';
import { type Constraint, dollars, type SpecValue } from './spec-constraints.ts';

/** Number of nodes after each constraint, in order. */
export type SpecFunnel = { constraint: string; remaining: number }[];

export type NoMatch = {
  constraint: string;
  requested: SpecValue;
  best_offered: SpecValue;
  candidates_before: number;
  funnel: SpecFunnel;
  /** Ids of the nodes nearest to the failed constraint. */
  nearest: string[];
  message: string;
  hint: string;
};

export type SpecMatch = { survivors: MarketNode[]; funnel: SpecFunnel };

/** Name of the first stage: offered, with enough free GPUs for a rental. */
export const HARD_STATE = 'rentable';
const MAX_NEAREST = 3;

/** `present` is the number of all nodes, `rentable` are those with enough free GPUs for a rental. */
export function matchSpec(
  present: number,
  rentable: readonly MarketNode[],
  constraints: readonly Constraint[],
): SpecMatch | NoMatch {
  const funnel: SpecFunnel = [{ constraint: HARD_STATE, remaining: rentable.length }];
  if (rentable.length === 0) return nothingRentable(present, funnel);
  let left = rentable;
  for (const constraint of constraints) {
    const before = left;
    left = before.filter(constraint.keep);
    funnel.push({ constraint: constraint.name, remaining: left.length });
    if (left.length === 0) return noMatch(constraint, before, funnel);
  }
  return { survivors: left.toSorted(byChoice), funnel };
}

/** Cheaper per GPU, then faster download, then id. */
export function byChoice(a: MarketNode, b: MarketNode): number {
  return (
    a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour ||
    (b.download_mbps ?? 0) - (a.download_mbps ?? 0) ||
    (a.id < b.id ? -1 : 1)
  );
}

function noMatch(constraint: Constraint, before: readonly MarketNode[], funnel: SpecFunnel) {
  const { name, requested } = constraint;
  const best = constraint.best(before);
  const nearest = before
    .map((node) => ({ node, distance: constraint.distance(node) }))
    .toSorted((a, b) => difference(a.distance, b.distance) || byChoice(a.node, b.node));
  return {
    constraint: name,
    requested,
    best_offered: best,
    candidates_before: before.length,
    funnel,
    nearest: nearest.slice(0, MAX_NEAREST).map(({ node }) => node.id),
    message: messageFor(name, requested, best),
    hint: best === null ? `Omit ${name}.` : constraint.remedy(best),
  };
}

function nothingRentable(present: number, funnel: SpecFunnel): NoMatch {
  return {
    constraint: HARD_STATE,
    requested: null,
    best_offered: null,
    candidates_before: present,
    funnel,
    nearest: [],
    message: 'No node can be rented now',
    hint: 'Retry in a few minutes; GET /executors lists the free nodes.',
  };
}

function messageFor(name: string, requested: SpecValue, best: SpecValue): string {
  if (name === 'max_price_per_gpu_hour') {
    return `No node within ${dollars(Number(requested))} per GPU-hour; cheapest offered ${dollars(Number(best))}`;
  }
  const request = requested === null ? 'rented whole' : `with ${name} ${requested}`;
  return `No node ${request}; best offered ${best ?? 'unknown'}`;
}

/** Avoids NaN for two infinite distances. */
function difference(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
