/** Plan of a run of chaos: all decisions, drawn from the seed. Pure. */
import type { Random } from '#shared/runtime/random.ts';

/** Requests of renters, with their weights. */
const OPERATIONS = {
  rent: 6,
  remove: 2,
  reboot: 3,
  backup: 7,
  restore: 5,
  transfer: 4,
  topUp: 2,
} as const;
/** Faults, with their weights. */
const FAULTS = {
  central: 4,
  validator: 3,
  agent: 4,
  ssh: 2,
  engine: 2,
  restic: 5,
  postgres: 3,
  slowStart: 3,
  clock: 2,
} as const;

export type OperationKind = keyof typeof OPERATIONS;
export type FaultKind = keyof typeof FAULTS;

/** `draw` selects among what exists at that time: `draw % candidates`. */
export type PlannedOperation = { atMs: number; kind: OperationKind; draw: number; other: number };
export type PlannedFault = {
  kind: FaultKind;
  /** Time without a fault before this fault. */
  pauseMs: number;
  /** Time for which the victim is down, or by which its start is delayed. */
  downMs: number;
  draw: number;
};
export type ChaosPlan = { operations: PlannedOperation[]; faults: PlannedFault[] };

const OPERATION_EVERY_MS = 2_500;
const MAX_DRAW = 2 ** 30;
const SHORTEST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 12_000;
const LONGEST_DOWN_MS = 12_000;
/** Minimum delay of a slow start: earlier, an agent that needed 6 s to listen was declared dead. */
const SLOW_FROM_MS = 6_000;

/** Plans `ms` of operations, and as many faults as may fit. The kinds of `without` are left out. */
export function planChaos(random: Random, ms: number, without: readonly string[]): ChaosPlan {
  const operations: PlannedOperation[] = [];
  for (let atMs = 0; atMs < ms; atMs += random.int(2 * OPERATION_EVERY_MS)) {
    const kind = drawn(random, OPERATIONS);
    operations.push({ atMs, kind, draw: random.int(MAX_DRAW), other: random.int(MAX_DRAW) });
  }
  const faults: PlannedFault[] = [];
  for (let atMs = 0; atMs < ms; ) {
    const kind = drawn(random, FAULTS);
    const pauseMs = SHORTEST_PAUSE_MS + random.int(LONGEST_PAUSE_MS - SHORTEST_PAUSE_MS);
    const downMs = random.int(LONGEST_DOWN_MS) + (kind === 'slowStart' ? SLOW_FROM_MS : 0);
    const fault = { kind, pauseMs, downMs, draw: random.int(MAX_DRAW) };
    if (!without.includes(kind)) faults.push(fault);
    atMs += pauseMs;
  }
  return { operations, faults };
}

export function isFaultKind(word: string): boolean {
  return Object.hasOwn(FAULTS, word);
}

function drawn<Kind extends string>(random: Random, weights: Readonly<Record<Kind, number>>): Kind {
  const kinds = Object.keys(weights) as Kind[];
  return kinds
    .flatMap((kind) => Array<Kind>(weights[kind]).fill(kind))
    .at(random.int(kinds.reduce((sum, kind) => sum + weights[kind], 0))) as Kind;
}
