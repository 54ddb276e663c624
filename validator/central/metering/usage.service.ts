/** Follows the states of pods: every move of a pod comes by here, in its own transaction (pods/pod.store.ts). */
import { SYSTEM_ACTOR } from '../auth/identity.ts';
import { lockRow } from '../db/row-lock.ts';
import type { Db } from '../db/tables.ts';
import { voidHold } from '../ledger/hold.service.ts';
import { causedBy } from '../ledger/ledger-account.ts';
import { BILLABLE_STATES, type PodState } from '../pods/pod.state.ts';
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
  listLatestClosed,
  type Meter,
  meteredPod,
  placeMeter,
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
      ? await begin(tx, podId, { atMs, cause })
      : await turn(tx, meter, to, { nowMs, atMs, cause });
  if (meter?.is_billable === placed.is_billable) return;
  await boundSpending(tx, placed);
  if (!leavesRunway) await runwayChanged(tx, placed.account_id, nowMs);
}

/**
 * When a pod was first stopped since it has run for `ranMs` that were paid; null: not before now. Whoever starts a pod again for a
 * moment has its GPUs to himself no longer than after one stop.
 */
export async function firstStopSince(tx: Db, podId: string, ranMs: number): Promise<number | null> {
  let firstMs: number | null = null;
  let leftMs = ranMs;
  for (const segment of await listLatestClosed(tx, podId, MOST_SEGMENTS)) {
    const { from_ms: fromMs, to_ms: toMs = null, state } = segment;
    if (leftMs <= 0) break;
    if (segment.is_billable === 1) leftMs -= (toMs ?? fromMs) - fromMs;
    else if (state === 'stopped') firstMs = fromMs;
  }
  return firstMs;
}

type At = { atMs: number; cause: UsageCause };

async function begin(tx: Db, podId: string, { atMs, cause }: At): Promise<Meter> {
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
  await openSegment(tx, meter, cause);
  return meter;
}

async function turn(
  tx: Db,
  meter: Meter,
  to: PodState,
  { nowMs, atMs, cause }: At & { nowMs: number },
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
  if (!isEnd) await openSegment(tx, next, cause);
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

function openSegment(tx: Db, meter: Meter, cause: UsageCause): Promise<void> {
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
  });
}
