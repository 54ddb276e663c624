/**
 * Constraints on nodes: the number of nodes that each constraint leaves, and the nodes nearest to the first constraint
 * that leaves none. The node list, the list of pods and rent-by-spec share these constraints. Pure.
 */
import { matchesGpuType, shortGpuType } from '#shared/api/gpu-type.ts';
import { huidOf } from './executor-response.ts';

export type ConstraintValue = string | number | boolean;

export type Constraint<T> = {
  name: string;
  /** Value in the request; null if the value depends on the node. */
  requested: ConstraintValue | null;
  keep(node: T): boolean;
  /** Value that a request could contain to accept this node; null if unknown. */
  offered(node: T): ConstraintValue | null;
  /** Distance of a rejected node from the requested value: 0 for values without an order, infinite if unknown. */
  distance(node: T): number;
  /** Only for constraints on the place: returns false for a node without the compared part of a place. */
  isLocated?(node: T): boolean;
  /** Index of the offered nodes that decides about many nodes at once; absent if each node must be examined. */
  index?: ConstraintIndex;
};

/**
 * `group`: all nodes of a group of the index meet the constraint, or none. `price`: the constraint is met by all nodes
 * up to a price, or from a price. `place`, `id`: only nodes in the area, or with these ids, can meet the constraint.
 */
export type ConstraintIndex =
  | { by: 'group' }
  | { by: 'price'; keeps: 'cheaper' | 'dearer' }
  | { by: 'place'; area: { lat: number; lon: number; miles: number } }
  | { by: 'id'; ids: ReadonlySet<string> };

/** The index for constraints on figures that are equal in a group. */
export const BY_GROUP = { index: { by: 'group' } } as const;

/** Number of nodes after each constraint, in order; the first entry counts the nodes before all constraints. */
export type Funnel = { constraint: string; remaining: number }[];

/** The first constraint that left no node. */
export type Unmet<T, C extends Constraint<T> = Constraint<T>> = {
  constraint: C;
  /** Returns the nodes that the constraint received, in their order. */
  before(): readonly T[];
  /** Examines all nodes of `before`. */
  explain(): Explanation;
};

export type Constrained<T, C extends Constraint<T>> = {
  left: Iterable<T> & { readonly length: number };
  funnel: Funnel;
  /** Null if nodes are left, or if there were no nodes to begin with. */
  unmet: Unmet<T, C> | null;
};

/** A node that the constraint rejected although the node is near the requested value. */
export type NearestNode = {
  constraint: string;
  /** Requested value; `all` if the value depends on the node. */
  requested: ConstraintValue;
  /** Offered value; `unknown` if the node does not report it. */
  offered: ConstraintValue;
  executor_id: string;
  executor_huid: string;
};

/** Why a constraint left no node. */
export type Explanation = {
  /** Nearest first; equally near nodes keep their order. */
  nearest: NearestNode[];
  /** Distance of the last of `nearest`; infinite while fewer than the maximum are known. */
  farthest: number;
  /** The value with which the constraint would accept a node: the value that most of the nearest nodes offer. */
  best: ConstraintValue | null;
  /** Number of nodes without a location; null if the constraint does not concern the place. */
  withoutLocation: number | null;
};

/** Maximum number of nodes that an explanation lists. */
export const MAX_NEAREST = 3;

/** Applies the constraints in order. `first` names the first entry of the funnel. */
export function applyConstraints<T extends { id: string }, C extends Constraint<T>>(
  first: string,
  nodes: readonly T[],
  constraints: readonly C[],
): Constrained<T, C> {
  const counts = constraints.map(() => 0);
  const left: T[] = [];
  for (const node of nodes) {
    const passed = countPassed(node, constraints);
    for (let at = 0; at < passed; at += 1) counts[at] = (counts[at] ?? 0) + 1;
    if (passed === constraints.length) left.push(node);
  }
  const { funnel, reached } = funnelOf(first, nodes.length, constraints, counts);
  const constraint = constraints[reached];
  if (constraint === undefined) return { left, funnel, unmet: null };
  const earlier = constraints.slice(0, reached);
  const before = () => nodes.filter((node) => countPassed(node, earlier) === reached);
  const unmet = { constraint, before, explain: () => explain(constraint, before()) };
  return { left, funnel, unmet };
}

/**
 * Returns the funnel of a search that `all` nodes began, and the index of the first constraint that left none. The
 * index is -1 if nodes are left, or if there were no nodes to begin with.
 */
export function funnelOf(
  first: string,
  all: number,
  constraints: readonly { name: string }[],
  counts: readonly number[],
): { funnel: Funnel; reached: number } {
  const funnel = [
    { constraint: first, remaining: all },
    ...constraints.map(({ name }, at) => ({ constraint: name, remaining: counts[at] ?? 0 })),
  ];
  return { funnel, reached: all === 0 ? -1 : counts.indexOf(0) };
}

/** Number of constraints that the node meets before the first that it does not meet. */
export function countPassed<T>(node: T, constraints: readonly Constraint<T>[]): number {
  let passed = 0;
  while (passed < constraints.length && constraints[passed]?.keep(node)) passed += 1;
  return passed;
}

/**
 * Explains why the constraint accepts none of the nodes. `weightOf` returns for how many equal nodes a node counts; the
 * nodes that it represents are not among the nearest.
 */
export function explain<T extends { id: string }>(
  constraint: Constraint<T>,
  before: Iterable<T>,
  weightOf: (node: T) => number = () => 1,
): Explanation {
  const { isLocated } = constraint;
  const near: { node: T; distance: number }[] = [];
  const counts = new Map<ConstraintValue, number>();
  let farthest = Number.POSITIVE_INFINITY;
  let least = Number.POSITIVE_INFINITY;
  let without = 0;
  for (const node of before) {
    const distance = constraint.distance(node);
    if (isLocated !== undefined && !isLocated(node)) without += weightOf(node);
    if (distance < least) counts.clear();
    least = Math.min(least, distance);
    if (distance === least && least < Number.POSITIVE_INFINITY)
      countValue(counts, constraint.offered(node), weightOf(node));
    if (near.length === MAX_NEAREST && distance >= farthest) continue;
    const at = near.findLastIndex((other) => other.distance <= distance) + 1;
    near.splice(at, 0, { node, distance });
    near.length = Math.min(near.length, MAX_NEAREST);
    farthest = near[MAX_NEAREST - 1]?.distance ?? Number.POSITIVE_INFINITY;
  }
  return {
    nearest: near.map(({ node }) => nearestNode(constraint, node)),
    farthest,
    best: mostFrequent(counts),
    withoutLocation: isLocated === undefined ? null : without,
  };
}

function countValue(
  counts: Map<ConstraintValue, number>,
  value: ConstraintValue | null,
  weight: number,
): void {
  if (value !== null) counts.set(value, (counts.get(value) ?? 0) + weight);
}

function nearestNode<T extends { id: string }>(constraint: Constraint<T>, node: T): NearestNode {
  return {
    constraint: constraint.name,
    requested: constraint.requested ?? 'all',
    offered: constraint.offered(node) ?? 'unknown',
    executor_id: node.id,
    executor_huid: huidOf(node.id),
  };
}

/** Returns the most frequent value, the lowest of several. */
function mostFrequent(counts: ReadonlyMap<ConstraintValue, number>): ConstraintValue | null {
  const [best] = [...counts].toSorted(
    ([a, first], [b, second]) => second - first || (a < b ? -1 : 1),
  );
  return best?.[0] ?? null;
}

/** Returns a lower bound on a figure. A node without the figure does not meet it. */
export function atLeast<T>(
  name: string,
  least: number,
  figure: (node: T) => number | null,
): Constraint<T> {
  return {
    name,
    requested: least,
    keep: (node) => (figure(node) ?? Number.NEGATIVE_INFINITY) >= least,
    offered: figure,
    distance: (node) => least - (figure(node) ?? Number.NEGATIVE_INFINITY),
  };
}

/** Returns an upper bound on a figure. A node without the figure does not meet it. */
export function atMost<T>(
  name: string,
  most: number,
  figure: (node: T) => number | null,
): Constraint<T> {
  return {
    name,
    requested: most,
    keep: (node) => (figure(node) ?? Number.POSITIVE_INFINITY) <= most,
    offered: figure,
    distance: (node) => (figure(node) ?? Number.POSITIVE_INFINITY) - most,
  };
}

/** Returns a choice among values without an order. Without `keep`, the node must offer exactly the requested value. */
export function oneOf<T>(
  name: string,
  requested: ConstraintValue,
  offered: (node: T) => ConstraintValue | null,
  keep: (node: T) => boolean = (node) => offered(node) === requested,
): Constraint<T> {
  const distance = (node: T) => (offered(node) === null ? Number.POSITIVE_INFINITY : 0);
  return { name, requested, keep, offered, distance };
}

/** Returns a choice of nodes whose GPUs have the short type or the full name `wanted`. */
export function gpuTypeConstraint<T extends { machineName: string }>(
  wanted: string,
): Constraint<T> {
  // Thousands of nodes have the same name.
  const types = new Map<string, { short: string; isWanted: boolean }>();
  const typeOf = ({ machineName: name }: T) => {
    const known = types.get(name);
    if (known !== undefined) return known;
    const type = { short: shortGpuType(name), isWanted: matchesGpuType(name, wanted) };
    types.set(name, type);
    return type;
  };
  const offered = (node: T) => typeOf(node).short;
  return oneOf('gpu_type', wanted, offered, (node: T) => typeOf(node).isWanted);
}
