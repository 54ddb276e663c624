/** Follows the states of pods: every move of a pod comes by here, in its own transaction (pods/pod.store.ts). */

import { BILLABLE_STATES, type PodState } from '../../market/pods/pod.state.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { voidHold } from '../ledger/hold.service.ts';
import { causedBy } from '../ledger/ledger-account.ts';
import { runwayChanged } from './runway.service.ts';
import { settleMeters, walletsOf } from './settle.service.ts';
import { usedAtMost } from './settle-accounts.ts';
import { costUntil } from './settlement.ts';
import { boundSpending } from './spend-limit.ts';
import { USAGE_CAUSES, type UsageCause } from './usage.state.ts';
import {
  closeSegment,
  findMeter,
  insertMeter,
  insertSegment,
  listLatestSegments,
  type Meter,
  meteredPod,
  placeMeter,
  type SegmentRow,
} from './usage.store.ts';

/** A move of a pod as its meter sees it. */
export type Metered = {
  /**
   * From when on it counts; by default now. Never before what was settled already, nor before the last move, and not after
   * the time of a pod that costs money has ended.
   */
  atMs?: number;
  /** Why; by default what the state says. */
  cause?: UsageCause;
  /** The caller tells the account's runway of it, together with other moves. */
  leavesRunway?: boolean;
};

/** What a stop may be noted late and count from its own time all the same: the container ran on for as long. */
const COUNTED_LATE_MS = 60_000;
/** Looked back at for earlier stops. */
const MOST_SEGMENTS = 200;
const ENDS: readonly PodState[] = ['deleting', 'creation_failed', 'deleted'];

/** A pod has come to `to`: its segment ends and the next begins. Nothing before its first `running`, nor after its end. */
export async function followPod(
  tx: Db,
  podId: string,
  to: PodState,
  {
    nowMs,
    atMs = nowMs,
    cause = USAGE_CAUSES[to],
    leavesRunway = false,
  }: Metered & { nowMs: number },
): Promise<void> {
  const meter = await findMeter(tx, podId);
  if (meter === undefined ? to !== 'running' : meter.ended_at !== null || meter.state === to) {
    return;
  }
  const placed =
    meter === undefined
      ? await begin(tx, podId, { nowMs, atMs, cause })
      : await turn(tx, meter, to, { nowMs, atMs, cause });
  if (meter?.is_billable === placed.is_billable) return;
  await boundSpending(tx, placed);
  if (!leavesRunway) await runwayChanged(tx, placed.account_id, nowMs);
}

/**
 * For how long a pod that stops at `atMs` is kept: `fullMs`, less what it has stood still before, as far as it has not run that long
 * since. Whoever starts one again for moments would have its GPUs for nothing. The time in which a stop was not yet noted is
 * no time that it was kept for, but for its first minute.
 */
export async function graceMs(
  tx: Db,
  podId: string,
  { atMs, fullMs }: { atMs: number; fullMs: number },
): Promise<number> {
  let leftMs = fullMs;
  const latest = await listLatestSegments(tx, podId, MOST_SEGMENTS);
  for (const segment of latest.toReversed()) {
    const ms = Math.max(0, (segment.to_ms ?? atMs) - segment.from_ms);
    if (segment.is_billable === 1) leftMs = Math.min(fullMs, leftMs + ms);
    else if (segment.state === 'stopped') {
      leftMs = Math.max(0, leftMs - Math.max(0, ms - unnotedMs(segment)));
    }
  }
  return leftMs;
}

/** From when on nobody had noted the stop, after its first minute. */
function unnotedMs({ from_ms: fromMs, noted_ms: notedMs }: SegmentRow): number {
  return Math.max(0, (notedMs ?? fromMs) - fromMs - COUNTED_LATE_MS);
}

/** Looked at `nowMs`. */
type At = { nowMs: number; atMs: number; cause: UsageCause };

async function begin(tx: Db, podId: string, { nowMs, atMs, cause }: At): Promise<Meter> {
  const pod = await meteredPod(tx, podId);
  await lockRow(tx, 'accounts', pod.account_id);
  const meter: Meter = {
    pod_id: podId,
    ...pod,
    ...{ seq: 0, state: 'running', is_billable: 1, since_ms: atMs },
    ...{ closed_uusd: 0, closed_rest: 0, charged_uusd: 0, provider_uusd: 0, granted_uusd: 0 },
    ...{ absorbed_uusd: 0, refunded_uusd: 0, tick_seq: 0, settled_to_ms: atMs, ended_at: null },
    changed_ms: 0,
  };
  await insertMeter(tx, meter);
  await openSegment(tx, meter, cause, nowMs);
  return meter;
}

async function turn(
  tx: Db,
  meter: Meter,
  to: PodState,
  { nowMs, atMs, cause }: At,
): Promise<Meter> {
  await lockRow(tx, 'accounts', meter.account_id);
  const isBillable = meter.is_billable === 1;
  const untilMs = isBillable ? await usedAtMost(tx, meter, atMs) : atMs;
  const endMs = Math.max(untilMs, meter.since_ms, meter.settled_to_ms);
  if (isBillable) {
    const wallets = await walletsOf(tx, [meter.account_id]);
    await settleMeters(tx, [{ meter, untilMs: endMs }], wallets, nowMs);
  }
  await closeSegment(tx, meter.pod_id, meter.seq, endMs);
  const closed = costUntil(meter, endMs);
  const isEnd = ENDS.includes(to);
  // Of what was used so far: what was held paid for it, and what was not used is free.
  await releaseRest(tx, meter, nowMs);
  const next: Meter = {
    ...meter,
    ...{ closed_uusd: closed.uusd, closed_rest: closed.rest, settled_to_ms: endMs, hold_id: null },
    ...(isEnd
      ? { is_billable: 0 as const, ended_at: endMs }
      : { seq: meter.seq + 1, state: to, is_billable: billable(to), since_ms: endMs }),
  };
  await placeMeter(tx, next);
  if (!isEnd) await openSegment(tx, next, cause, nowMs);
  return next;
}

async function releaseRest(tx: Db, { hold_id: holdId, pod_id: id }: Meter, nowMs: number) {
  if (holdId === null) return;
  const cause = { type: 'pod-hold-void', id, atMs: nowMs };
  await voidHold(tx, holdId, causedBy(SYSTEM_ACTOR, cause));
}

function billable(state: PodState): 0 | 1 {
  return BILLABLE_STATES.some((known) => known === state) ? 1 : 0;
}

function openSegment(tx: Db, meter: Meter, cause: UsageCause, notedMs: number): Promise<void> {
  return insertSegment(tx, {
    pod_id: meter.pod_id,
    seq: meter.seq,
    prev_seq: meter.seq === 0 ? null : meter.seq - 1,
    from_ms: meter.since_ms,
    to_ms: null,
    state: meter.state,
    is_billable: meter.is_billable,
    price_uusd_per_gpu_hour: meter.price_uusd_per_gpu_hour,
    gpu_count: meter.gpu_count,
    cause,
    noted_ms: notedMs,
  });
}
