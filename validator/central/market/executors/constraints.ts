/**
 * Constraints on nodes: the number of nodes that each constraint leaves, and the nodes nearest to the first constraint
 * that leaves none. The node list, the list of pods and rent-by-spec share these constraints. Pure.
 */

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
};

/** Number of nodes after each constraint, in order; the first entry counts the nodes before all constraints. */
export type Funnel = { constraint: string; remaining: number }[];

/** The first constraint that left no node, and the nodes that it received. */
export type Unmet<T, C extends Constraint<T> = Constraint<T>> = {
  constraint: C;
  before: readonly T[];
};

export type Constrained<T, C extends Constraint<T>> = {
  left: readonly T[];
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
};

const MAX_NEAREST = 3;

/** Applies the constraints in order. `first` names the first entry of the funnel. */
export function applyConstraints<T, C extends Constraint<T>>(
  first: string,
  nodes: readonly T[],
  constraints: readonly C[],
): Constrained<T, C> {
  const funnel: Funnel = [{ constraint: first, remaining: nodes.length }];
  let left = nodes;
  let unmet: Unmet<T, C> | null = null;
  for (const constraint of constraints) {
    const before = left;
    left = before.filter(constraint.keep);
    funnel.push({ constraint: constraint.name, remaining: left.length });
    if (left.length === 0 && before.length > 0) unmet = { constraint, before };
  }
  return { left, funnel, unmet };
}

/** Returns the nearest nodes, nearest first; equally near nodes keep their order. */
export function nearestTo<T extends { id: string }>({
  constraint,
  before,
}: Unmet<T>): NearestNode[] {
  const nearest: { node: T; distance: number }[] = [];
  for (const node of before) {
    const distance = constraint.distance(node);
    const last = nearest[MAX_NEAREST - 1];
    if (last !== undefined && last.distance <= distance) continue;
    const at = nearest.findIndex((other) => other.distance > distance);
    nearest.splice(at < 0 ? nearest.length : at, 0, { node, distance });
    nearest.length = Math.min(nearest.length, MAX_NEAREST);
  }
  return nearest.map(({ node }) => ({
    constraint: constraint.name,
    requested: constraint.requested ?? 'all',
    offered: constraint.offered(node) ?? 'unknown',
    executor_id: node.id,
  }));
}

/** Number of rejected nodes without a location; null if the constraint does not concern the place. */
export function countWithoutLocation<T>({ constraint, before }: Unmet<T>): number | null {
  const { isLocated } = constraint;
  return isLocated === undefined ? null : before.filter((node) => !isLocated(node)).length;
}

/** Returns the value with which the constraint would accept a node: the value that most of the nearest nodes offer. */
export function bestOffered<T>({ constraint, before }: Unmet<T>): ConstraintValue | null {
  let least = Number.POSITIVE_INFINITY;
  for (const node of before) least = Math.min(least, constraint.distance(node));
  if (least === Number.POSITIVE_INFINITY) return null;
  const counts = new Map<ConstraintValue, number>();
  for (const node of before) {
    const value = constraint.distance(node) === least ? constraint.offered(node) : null;
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
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
