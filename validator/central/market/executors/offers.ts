/** The nodes on offer in their order, with what happened to them of late: what was made of them can follow. */
import type { Listed } from './market-view.ts';

/** A node that came (`isIn`) or went; one that changed went as it was and came as it is. */
export type Step = { node: Listed; isIn: boolean };

export type Offers = {
  /** Cheapest first, then by id. It changes in place: good until the next `await`. */
  readonly nodes: readonly Listed[];
  /** Moves with every change. */
  readonly version: number;
  /** What happened after that version, oldest first; null when that is not known any more. */
  stepsSince(version: number): readonly Step[] | null;
};

/** Beyond these at a time one pass over all is quicker than a search for each. */
const MOST_SEARCHED = 100;
/** What is remembered for those that follow. */
const MOST_STEPS = 1_000;

/** An empty market. */
export function createOffers() {
  const steps: Step[] = [];
  let nodes: Listed[] = [];
  let version = 0;

  function applyAtOnce(gone: ReadonlySet<Listed>, come: readonly Listed[]): void {
    const stay = nodes.filter((node) => !gone.has(node));
    nodes = [...stay, ...come].sort(byPrice);
    steps.length = 0;
    version += 1;
  }

  function applyOneByOne(taken: readonly Step[]): void {
    for (const step of taken) applyStep(nodes, step);
    steps.push(...taken);
    steps.splice(0, steps.length - MOST_STEPS);
    version += taken.length;
  }

  const offers: Offers = {
    get nodes() {
      return nodes;
    },
    get version() {
      return version;
    },
    stepsSince(since) {
      const missed = version - since;
      return missed > steps.length ? null : steps.slice(steps.length - missed);
    },
  };

  return {
    offers,
    /** Takes out what is in `gone`, and puts in what is in `come`. */
    apply(gone: readonly Listed[], come: readonly Listed[]): void {
      const all = gone.length + come.length;
      if (all > MOST_SEARCHED) applyAtOnce(new Set(gone), come);
      else if (all > 0) {
        applyOneByOne([
          ...gone.map((node) => ({ node, isIn: false })),
          ...come.map((node) => ({ node, isIn: true })),
        ]);
      }
    },
  };
}

/** Brings a list in that order, of all the nodes or some, to where it is after the step. */
export function applyStep(nodes: Listed[], { node, isIn }: Step): void {
  const at = placeOf(nodes, node);
  if (isIn) nodes.splice(at, 0, node);
  else if (nodes[at] === node) nodes.splice(at, 1);
}

/** Of the node, or where it would be. */
function placeOf(nodes: readonly Listed[], node: Listed): number {
  let from = 0;
  let to = nodes.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const other = nodes[middle];
    if (other !== undefined && byPrice(other, node) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function byPrice({ node: a }: Listed, { node: b }: Listed): number {
  const difference = a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour;
  return difference === 0 ? order(a.id, b.id) : difference;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
