/** Outcomes of rentals, from the events of a simulation. Pure except for its own counters. */
import type { JournalEvent } from '../world/journal.ts';
import type { LostPod } from './fault-effects.ts';

export type Interruption = { at_ms: number; status: string; reason: string; executor: string };

export type RentalTally = {
  record(event: JournalEvent, atMs: number): void;
  counts(): RentalCounts;
  /** Expected cost of each accepted rental in micro-USD, by pod. */
  quotes(): ReadonlyMap<string, number>;
};

export type RentalCounts = {
  accepted: number;
  /** Refused requests by error code and, if the answer named it, the constraint that no node met. */
  refusals: ReadonlyMap<string, number>;
  /** Seconds from the rental to the first time at which the renter saw the pod run. */
  startSeconds: readonly number[];
  /** Rentals that never ran, by status and reason. */
  failedStarts: ReadonlyMap<string, number>;
  /** Pods that ended before their renter ended them. */
  interruptions: readonly Interruption[];
  /** Pods that their renter ended while they ran. */
  completed: number;
  /** Pods that still start or run. */
  open: number;
  /** Time and host of each accepted rental. */
  rented: readonly { atMs: number; executor: string }[];
  /** Times of the refused requests. */
  refusedMs: readonly number[];
  /** Pods that never ran or were interrupted, and not because of their renter. */
  lost: readonly LostPod[];
};

type OpenPod = { executor: string; rentedMs: number; hasRun: boolean; isOver: boolean };

/** Reasons of the end of a pod that its renter causes. */
const OF_RENTER: ReadonlySet<string> = new Set([
  'user_initiated',
  'scheduled_termination',
  'balance_exhausted',
  'max_spend_reached',
  'idle_shutdown',
]);

const MINUTES = 60;
const SECOND_MS = 1_000;
const RUNNING = 'RUNNING';
const PENDING = 'PENDING';

export function createRentalTally(): RentalTally {
  const open = new Map<string, OpenPod>();
  const quotes = new Map<string, number>();
  const refusals = new Map<string, number>();
  const failedStarts = new Map<string, number>();
  const startSeconds: number[] = [];
  const interruptions: Interruption[] = [];
  const rented: { atMs: number; executor: string }[] = [];
  const refusedMs: number[] = [];
  const lost: LostPod[] = [];
  let [accepted, completed] = [0, 0];

  type Seen = { pod: string; status: string; reason: string; atMs: number };

  function seen(pod: OpenPod, { status, reason, atMs, ...id }: Seen): void {
    if (status === PENDING || pod.isOver) return;
    if (status === RUNNING) {
      if (!pod.hasRun) startSeconds.push((atMs - pod.rentedMs) / SECOND_MS);
      pod.hasRun = true;
      return;
    }
    pod.isOver = true;
    const { executor, hasRun } = pod;
    if (!OF_RENTER.has(reason)) lost.push({ ...id, executor, atMs, hasRun });
    if (hasRun) interruptions.push({ at_ms: atMs, status, reason, executor });
    else increment(failedStarts, reason === '' ? status : `${status} ${reason}`);
  }

  return {
    record(event, atMs) {
      if (event.kind === 'refused') {
        const constraint = textOf(event['constraint']);
        increment(refusals, constraint === '' ? textOf(event['code']) : constraint);
        refusedMs.push(atMs);
      } else if (event.kind === 'rented' && event.pod !== undefined) {
        accepted += 1;
        const executor = event.executor ?? '';
        rented.push({ atMs, executor });
        open.set(event.pod, { executor, rentedMs: atMs, hasRun: false, isOver: false });
        const hours = numberOf(event['minutes']) / MINUTES;
        quotes.set(event.pod, Math.round(numberOf(event['price_uusd_per_hour']) * hours));
      } else if (event.kind === 'seen') {
        const { pod: id = '', status, reason } = event;
        const pod = open.get(id);
        const view = { pod: id, status: textOf(status), reason: textOf(reason), atMs };
        if (pod !== undefined) seen(pod, view);
      } else if (event.kind === 'ended' && event.pod !== undefined) {
        const pod = open.get(event.pod);
        if (pod?.hasRun === true && !pod.isOver) completed += 1;
        open.delete(event.pod);
      }
    },
    counts: () => ({
      accepted,
      refusals,
      startSeconds,
      failedStarts,
      interruptions,
      completed,
      open: open.size,
      rented,
      refusedMs,
      lost,
    }),
    quotes: () => quotes,
  };
}

type Detail = JournalEvent[string];
const textOf = (value: Detail): string => (typeof value === 'string' ? value : '');
const numberOf = (value: Detail): number => (typeof value === 'number' ? value : 0);

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
