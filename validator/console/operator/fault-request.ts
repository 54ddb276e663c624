/** The form for a fault of a simulated marketplace, and the request that it sends. Pure. */
import type { BeginFault } from '../api/local-operations.ts';
import { wordsOf } from '../parts/format.ts';

export type FaultValues = {
  kind: string;
  executor_id: string;
  region: string;
  /** Minutes, permille or seconds, by kind. */
  amount: number | null;
};

export const NO_FAULT: FaultValues = { kind: 'dies', executor_id: '', region: '', amount: 60 };

export const FAULT_KINDS = [
  { value: 'dies', label: 'A node is down and loses its pods' },
  { value: 'flap', label: 'A node does not respond' },
  { value: 'slow', label: 'A node starts pods ten times as slowly' },
  { value: 'card', label: 'A node loses a GPU' },
  { value: 'region', label: 'A region is cut off' },
  { value: 'leave', label: 'Providers leave for ever' },
  { value: 'central', label: 'The central API is killed' },
  { value: 'validator', label: 'The validator is killed' },
  { value: 'registry', label: 'The image registry is down' },
  { value: 'payments-late', label: 'Payments are late' },
  { value: 'payments-twice', label: 'Payments are reported twice' },
  { value: 'clock', label: 'The wall clock jumps' },
];

/** Words of a kind of fault; an unknown kind keeps its name. */
export function faultWords(kind: string): string {
  return FAULT_KINDS.find(({ value }) => value === kind)?.label ?? wordsOf(kind);
}

const NODE_FAULTS: readonly string[] = ['dies', 'flap', 'slow', 'card'];
const MINUTES = { field: 'lasts_minutes', label: 'Duration', name: 'minutes' };
const UNITS: Readonly<Record<string, typeof MINUTES>> = {
  leave: { field: 'share_permille', label: 'Share of the providers', name: 'permille' },
  clock: { field: 'by_seconds', label: 'Jump', name: 'seconds' },
};

/** The field of the form, by the members of the request that have its value. */
export const AMOUNT_MEMBERS = Object.fromEntries(
  [MINUTES, ...Object.values(UNITS)].map(({ field }) => [field, 'amount' as const]),
);

/** Returns which fields a kind of fault has. */
export function targetOf(kind: string): {
  target: 'executor_id' | 'region' | null;
  unit: typeof MINUTES;
} {
  const unit = UNITS[kind] ?? MINUTES;
  if (NODE_FAULTS.includes(kind)) return { target: 'executor_id', unit };
  return { target: kind === 'region' ? 'region' : null, unit };
}

export function faultRequest({ kind, amount, ...targets }: FaultValues): BeginFault {
  const { target, unit } = targetOf(kind);
  return {
    kind,
    [unit.field]: amount,
    ...(target === null ? {} : { [target]: targets[target] }),
  };
}
