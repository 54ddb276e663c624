/** What a document says of its executor's cycle. Pure: whoever has the documents gets the same entries. */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { lineSpeeds } from '../checks/line.check.ts';
import { Measured } from '../checks/measured.ts';
import type { EvidenceDocument } from '../evidence/document.ts';
import type { CycleVerdict, StoreDb } from '../store/tables.ts';
import { goodTimeBefore, lastEntryBefore } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';
import { ONE_PPM, type WeightPolicy } from './weight-policy.ts';

/** A check that proves what it names once it passes; while it does not count nobody has the bonus. */
const RUNTIME_CHECK = 'dind_runtime';

/** Of an inventory, which was parsed whole before it came into the document. */
const Devices = z.object({ gpu: z.object({ devices: z.array(z.object({ name: z.string() })) }) });

/** What the cycles before say of an executor. */
export type ExecutorHistory = { failurePpm: number; uptimeMinutes: number; runtimeProven: boolean };

/** The check that says whether what was measured of a line is the line's own. */
const LINE_CHECK = 'bandwidth';

/** Null for an executor whose hotkey is none: nobody could be given its weight. */
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
    rented: executor.rented,
    uptime_minutes: past.uptimeMinutes,
    runtime_proven: runtimeProven(document, past),
    collateral: executor.collateral_deposited === true,
    failure_ppm: past.failurePpm,
    price_uusd: executor.price_uusd,
    bandwidth_mbit: bandwidthOf(document),
  };
}

/** Not tried on a host that is rented: there it is as it was before. */
function runtimeProven({ checks, executor }: EvidenceDocument, past: ExecutorHistory): boolean {
  const check = checks.find(({ check_id: id }) => id === RUNTIME_CHECK);
  if (check?.mode !== 'enforce') return false;
  return executor.rented ? past.runtimeProven : check.passed && check.message === 'passed';
}

/** The failure average after one more verdict; what could not be measured leaves it as it is. */
export function nextFailurePpm(
  before: number,
  verdict: CycleEntry['verdict'],
  { failure_keep_ppm: keep }: WeightPolicy,
): number {
  if (verdict === 'withheld') return before;
  const kept = Math.floor((before * keep) / ONE_PPM);
  return verdict === 'failed' ? kept + ONE_PPM - keep : kept;
}

/** Null where the line was not measured, or could not be told from the validator's own. */
function bandwidthOf({ checks, inputs }: EvidenceDocument): number | null {
  const check = checks.find(({ check_id: id }) => id === LINE_CHECK);
  if (check === undefined || check.message === 'unknown' || inputs.measured === null) return null;
  const speeds = lineSpeeds(Measured.parse(JSON.parse(inputs.measured)).line);
  return speeds === null ? null : Math.min(speeds.download_mbps, speeds.upload_mbps);
}

/** As measured; where the agent did not answer, as the central API lists it. */
function gpusOf({ inputs, executor }: EvidenceDocument): { model: string; count: number } {
  if (inputs.inventory === null) return { model: executor.gpu_type, count: executor.gpu_count };
  const { devices } = Devices.parse(JSON.parse(inputs.inventory)).gpu;
  return { model: devices[0]?.name ?? executor.gpu_type, count: devices.length };
}

// MERGED validator/weights/cycle-entry.ts: What the cycles before say of an executor: its uptime and its failure average, from the ledger alone.
const MINUTE_MS = 60_000;

/** One executor's verdict in one cycle of that many milliseconds. */
export type Moment = {
  executorId: string;
  cycle: number;
  verdict: CycleVerdict;
  lengthMs: number;
};

/** With the verdict of the moment itself; `isFirst`: nothing is known of before. */
export async function historyOf(
  store: StoreDb,
  { executorId, cycle, verdict, lengthMs }: Moment,
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
    // Written by us from a CycleEntry: its form is known.
    runtimeProven:
      before !== undefined && (JSON.parse(before.entry_json) as CycleEntry).runtime_proven,
    isFirst: before === undefined,
  };
}
