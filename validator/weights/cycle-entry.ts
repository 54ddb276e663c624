/** The entry of an executor in a cycle, derived from its document and from earlier cycles. */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { lineSpeeds } from '../checks/bandwidth.check.ts';
import { Measured } from '../checks/measured.ts';
import { weightlessIn as countWeightless } from '../checks/proof-record.ts';
import type { EvidenceDocument } from '../evidence/document.ts';
import type { CycleVerdict, StoreDb } from '../store/tables.ts';
import { goodTimeBefore, lastEntryBefore } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';
import { ONE_PPM, type WeightPolicy } from './weight-policy.ts';

/** Id of the check that proves Docker-in-Docker. No executor gets the bonus unless the check is enforced. */
const RUNTIME_CHECK = 'dind_runtime';

/** The part of an inventory that this module needs. The whole inventory was validated when the document was written. */
const Devices = z.object({ gpu: z.object({ devices: z.array(z.object({ name: z.string() })) }) });

/** State of an executor that depends on earlier cycles. */
export type ExecutorHistory = { failurePpm: number; uptimeMinutes: number; runtimeProven: boolean };

/** Id of the check of the age of proofs. A policy that does not enforce the check only records its failures. */
const PROOF_CHECK = 'proof_age';

/**
 * Id of the check that reports whether the executor's network connection limited a bandwidth measurement, or the
 * validator's.
 */
const LINE_CHECK = 'bandwidth';

/** Returns the entry; null for an executor with an invalid hotkey, to which no weight can be assigned. Pure. */
export function cycleEntryOf(
  document: EvidenceDocument,
  evidenceId: string,
  past: ExecutorHistory,
): CycleEntry | null {
  const { executor, verdict } = document;
  const hotkey = Hotkey.safeParse(executor.miner_hotkey);
  if (!hotkey.success) return null;
  const { model, count } = gpusOf(document);
  return {
    executor_id: document.executor_id,
    hotkey: hotkey.data,
    evidence_id: evidenceId,
    verdict,
    simulated: document.simulated,
    gpu_model: model,
    gpu_count: count,
    ...weightlessIn(document, count),
    rented: executor.rented,
    uptime_minutes: past.uptimeMinutes,
    runtime_proven: runtimeProven(document, past),
    collateral: executor.collateral_deposited === true,
    failure_ppm: past.failurePpm,
    price_uusd: executor.price_uusd,
    bandwidth_mbit: bandwidthOf(document),
    ...reportedByCentral(document),
  };
}

/** Values that only the central API can change; absent in documents that were written before it reported them. */
function reportedByCentral({
  executor: { paid_fees_uusd: fees, extra_incentive_eligible: linked },
}: EvidenceDocument): Pick<CycleEntry, 'paid_fees_uusd' | 'chat_linked'> {
  return {
    ...(fees == null ? {} : { paid_fees_uusd: fees }),
    ...(linked == null ? {} : { chat_linked: linked }),
  };
}

/** Returns true if Docker-in-Docker was proven. A rented host is not tested and keeps its last result. */
function runtimeProven({ checks, executor }: EvidenceDocument, past: ExecutorHistory): boolean {
  const check = checks.find(({ check_id: id }) => id === RUNTIME_CHECK);
  if (check?.mode !== 'enforce') return false;
  return executor.rented ? past.runtimeProven : check.passed && check.message === 'passed';
}

/** Moving average of failures after one more verdict; a withheld verdict does not change it. */
export function nextFailurePpm(
  before: number,
  verdict: CycleEntry['verdict'],
  { failure_keep_ppm: keep }: WeightPolicy,
): number {
  if (verdict === 'withheld') return before;
  const kept = Math.floor((before * keep) / ONE_PPM);
  return verdict === 'failed' ? kept + ONE_PPM - keep : kept;
}

/** GPUs without a proof of work, if the policy in force sets their weight to 0. */
function weightlessIn(
  { checks, inputs }: EvidenceDocument,
  count: number,
): Pick<CycleEntry, 'weightless_gpus'> {
  const check = checks.find(({ check_id: id }) => id === PROOF_CHECK);
  const isInForce = check?.passed === false && check.mode === 'observe';
  if (!isInForce || inputs.measured === null) return {};
  const { proof_record: record } = Measured.parse(JSON.parse(inputs.measured));
  const weightless = record === null ? 0 : countWeightless(count, record);
  return weightless === 0 ? {} : { weightless_gpus: weightless };
}

/**
 * Returns the bandwidth in Mbit/s; null if it was not measured, or if the validator's own network connection was the
 * limit.
 */
function bandwidthOf({ checks, inputs }: EvidenceDocument): number | null {
  const check = checks.find(({ check_id: id }) => id === LINE_CHECK);
  if (check === undefined || check.message === 'unknown' || inputs.measured === null) return null;
  const speeds = lineSpeeds(Measured.parse(JSON.parse(inputs.measured)).line);
  return speeds === null ? null : Math.min(speeds.download_mbps, speeds.upload_mbps);
}

/** GPUs as measured, or as listed by the central API if the agent did not answer. */
function gpusOf({ inputs, executor }: EvidenceDocument): { model: string; count: number } {
  if (inputs.inventory === null) return { model: executor.gpu_type, count: executor.gpu_count };
  const { devices } = Devices.parse(JSON.parse(inputs.inventory)).gpu;
  return { model: devices[0]?.name ?? executor.gpu_type, count: devices.length };
}

const MINUTE_MS = 60_000;

/** Verdict of one executor in one cycle of `lengthMs`. */
export type MeasuredCycle = {
  executorId: string;
  cycle: number;
  verdict: CycleVerdict;
  lengthMs: number;
};

/** History up to and including the given cycle. `isFirst`: no earlier cycle is stored. */
export async function historyOf(
  store: StoreDb,
  { executorId, cycle, verdict, lengthMs }: MeasuredCycle,
  policy: WeightPolicy,
): Promise<ExecutorHistory & { isFirst: boolean }> {
  const windowCycles = Math.ceil((policy.uptime.full_minutes * MINUTE_MS) / lengthMs);
  const before = await lastEntryBefore(store, executorId, cycle);
  const others = verdict === 'withheld' ? windowCycles : windowCycles - 1;
  const goodMs = await goodTimeBefore(store, { executorId, cycle, count: others });
  const uptimeMs = goodMs + (verdict === 'ok' ? lengthMs : 0);
  return {
    failurePpm: nextFailurePpm(before?.failure_ppm ?? 0, verdict, policy),
    uptimeMinutes: Math.floor(uptimeMs / MINUTE_MS),
    // `cycleEntryOf` wrote this text.
    runtimeProven:
      before !== undefined && (JSON.parse(before.entry_json) as CycleEntry).runtime_proven,
    isFirst: before === undefined,
  };
}
