/**
 * Meters pods: every state change of a pod calls this module in its transaction, which opens or closes a segment of
 * use.
 */
import { BILLABLE_STATES, type PodState } from '../../market/pods/pod.state.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { voidHold } from '../ledger/hold.service.ts';
import { costUntil } from './cost.ts';
import { updateRunway, updateSpendLimitDue } from './runway.service.ts';
import { chargeableUntil, lockWalletsOf, settleMeters } from './settlement.service.ts';
import {
  closeSegment,
  findMeter,
  findMeteredPod,
  insertMeter,
  insertSegment,
  listLatestSegments,
  type Meter,
  type SegmentRow,
  updateMeter,
} from './usage.store.ts';

/** Reason why a segment of a pod's time is billable or not, in the form that statements contain. */
type UsageCause =
  | 'running'
  | 'user_reboot'
  | 'reboot_failed'
  | 'contact_lost'
  | 'maintenance'
  | 'provider_fault'
  | 'failed'
  | 'balance_exhausted'
  | 'max_spend_reached'
  | 'idle_shutdown'
  | 'restarting'
  | 'ended';

/** Default cause of each state, unless the change states another cause. */
const USAGE_CAUSES: Record<PodState, UsageCause> = {
  pending: 'restarting',
  building: 'restarting',
  pulling: 'restarting',
  starting: 'restarting',
  restoring: 'restarting',
  running: 'running',
  rebooting: 'user_reboot',
  reboot_failed: 'reboot_failed',
  unknown: 'contact_lost',
  failed: 'failed',
  broken: 'provider_fault',
  stopped: 'balance_exhausted',
  creation_failed: 'failed',
  deleting: 'ended',
  deleted: 'ended',
};

/** Effect of a pod's state change on its meter. */
export type Metered = {
  /**
   * Time at which the change takes effect; now if absent. Clamped: not before the last settlement or state change, and
   * not after the end of a billable pod's time.
   */
  atMs?: number;
  /** Cause for the statement; the default cause of the state if absent. */
  cause?: UsageCause;
  /** True if the caller calls `updateRunway` itself after several changes. */
  leavesRunway?: boolean;
};

/** Maximum time before the recording of a stop that counts against the grace period. */
const COUNTED_LATE_MS = 60_000;
/** Number of segments that are considered when earlier stops are deducted from the grace period. */
const MOST_SEGMENTS = 200;
const ENDS: readonly PodState[] = ['deleting', 'creation_failed', 'deleted'];

/** Lists the pods whose present time is charged. */
export async function billablePodIds(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('usage_meters')
    .select('pod_id')
    .where('is_billable', '=', 1)
    .execute();
  return rows.map((row) => row.pod_id);
}

/** Closes the pod's segment and opens the next. Does nothing before its first `running` and after its end. */
export async function meterTransition(
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
  const after =
    meter === undefined
      ? await startMeter(tx, podId, { nowMs, atMs, cause })
      : await switchSegment(tx, meter, to, { nowMs, atMs, cause });
  if (meter?.is_billable === after.is_billable) return;
  await updateSpendLimitDue(tx, after);
  if (!leavesRunway) await updateRunway(tx, after.account_id, nowMs);
}

/**
 * Returns the time for which the data of a pod that stops at `atMs` is kept: `fullMs` minus the time of earlier stops.
 * Time in which the pod runs restores the deducted time, up to `fullMs`. Without the deduction, a renter could keep
 * GPUs reserved for free by restarting a pod for moments. Time before a stop was recorded does not count against the
 * grace period, except its first minute.
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
      leftMs = Math.max(0, leftMs - Math.max(0, ms - unrecordedMs(segment)));
    }
  }
  return leftMs;
}

/** Time between a stop and its recording, beyond the first minute. */
function unrecordedMs({ from_ms: fromMs, noted_ms: recordedMs }: SegmentRow): number {
  return Math.max(0, (recordedMs ?? fromMs) - fromMs - COUNTED_LATE_MS);
}

type Change = { nowMs: number; atMs: number; cause: UsageCause };

async function startMeter(tx: Db, podId: string, { nowMs, atMs, cause }: Change): Promise<Meter> {
  const pod = await findMeteredPod(tx, podId);
  await lockRow(tx, 'accounts', pod.account_id);
  const meter: Meter = {
    pod_id: podId,
    ...pod,
    seq: 0,
    state: 'running',
    is_billable: 1,
    since_ms: atMs,
    closed_uusd: 0,
    closed_rest: 0,
    charged_uusd: 0,
    provider_uusd: 0,
    granted_uusd: 0,
    absorbed_uusd: 0,
    refunded_uusd: 0,
    tick_seq: 0,
    settled_to_ms: atMs,
    ended_at: null,
    changed_ms: 0,
  };
  await insertMeter(tx, meter);
  await openSegment(tx, meter, cause, nowMs);
  return meter;
}

async function switchSegment(
  tx: Db,
  found: Meter,
  to: PodState,
  { nowMs, atMs, cause }: Change,
): Promise<Meter> {
  await lockRow(tx, 'accounts', found.account_id);
  // Another transaction may have settled the pod before this one had the lock.
  const meter = (await findMeter(tx, found.pod_id)) ?? found;
  const isBillable = meter.is_billable === 1;
  const untilMs = isBillable ? await chargeableUntil(tx, meter, atMs) : atMs;
  const endMs = Math.max(untilMs, meter.since_ms, meter.settled_to_ms);
  if (isBillable) {
    const wallets = await lockWalletsOf(tx, [meter.account_id]);
    await settleMeters(tx, [{ meter, untilMs: endMs }], wallets, nowMs);
  }
  await closeSegment(tx, meter.pod_id, meter.seq, endMs);
  const closed = costUntil(meter, endMs);
  const isEnd = ENDS.includes(to);
  // The settlement has used the hold if anything was due. The remaining hold is released.
  await releaseHold(tx, meter, nowMs);
  const next: Meter = {
    ...meter,
    closed_uusd: closed.uusd,
    closed_rest: closed.rest,
    settled_to_ms: endMs,
    hold_id: null,
    ...(isEnd
      ? { is_billable: 0 as const, ended_at: endMs }
      : { seq: meter.seq + 1, state: to, is_billable: billable(to), since_ms: endMs }),
  };
  await updateMeter(tx, next);
  if (!isEnd) await openSegment(tx, next, cause, nowMs);
  return next;
}

async function releaseHold(tx: Db, { hold_id: holdId, pod_id: id }: Meter, nowMs: number) {
  if (holdId === null) return;
  const cause = { type: 'pod-hold-void', id, atMs: nowMs };
  await voidHold(tx, holdId, causedBy(SYSTEM_ACTOR, cause));
}

function billable(state: PodState): 0 | 1 {
  return BILLABLE_STATES.some((known) => known === state) ? 1 : 0;
}

function openSegment(tx: Db, meter: Meter, cause: UsageCause, recordedMs: number): Promise<void> {
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
    noted_ms: recordedMs,
  });
}
