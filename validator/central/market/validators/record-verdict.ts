/** Applies a validator's verdict to a node. Only verdicts decide whether a node is rentable. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import {
  CheckResult,
  type HealthReport,
  isBlocking,
} from '#shared/api/central/validator-routes.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type ExecutorEntry, syncGpuSlots, updateExecutor } from '../executors/executor.service.ts';
import { figuresOf } from '../executors/node-figures.ts';
import type { ObservedColumns } from '../executors/reliability.service.ts';
import { enterCollections } from '../metric-history/metric-history.service.ts';

export type RecordedVerdict = {
  executor: ExecutorEntry;
  validatorHotkey: string;
  report: HealthReport;
  /** Columns that are written with the verdict, or alone if the report has no verdict to record. */
  observed: ObservedColumns;
  nowMs: number;
};

/** Accepted difference between a validator's clock and the server's clock; the same as for signed requests. */
const MAX_CLOCK_SKEW_MS = 300_000;

/** Records a verdict in the caller's transaction. Ignores a report whose check is older than the recorded verdict. */
export async function recordVerdict(tx: Db, verdict: RecordedVerdict): Promise<void> {
  const { executor, report, nowMs } = verdict;
  const { inventory } = report;
  // A validator's clock that runs far ahead must not block later verdicts; a small lead keeps their order.
  const { checked_at_ms: reportedMs } = report;
  const checkedAtMs = reportedMs > nowMs + MAX_CLOCK_SKEW_MS ? nowMs : reportedMs;
  const seenMs = Math.max(Math.min(checkedAtMs, nowMs), executor.last_seen_at ?? 0);
  const contact = { ...verdict.observed, ...(inventory === null ? {} : { last_seen_at: seenMs }) };
  const measured = report.verdict === 'verified' ? inventory : null;
  const isCurrent =
    !isLate(executor, checkedAtMs, nowMs) && isOfThisOffer(executor, report, checkedAtMs);
  if (report.verdict === 'withheld' || !isCurrent || !endsQuarantine(executor, report)) {
    if (Object.keys(contact).length > 0) await updateExecutor(tx, executor.id, contact);
    return;
  }
  await updateExecutor(tx, executor.id, {
    ...contact,
    state: report.verdict,
    validator_hotkey: verdict.validatorHotkey,
    verdict_at: checkedAtMs,
    checks_json: JSON.stringify(report.checks),
    updated_at: nowMs,
    ...(report.line ?? {}),
    ...(inventory === null
      ? {}
      : { inventory_json: JSON.stringify(inventory), ...figuresOf(inventory) }),
    ...(measured === null
      ? {}
      : { ...offeredBy(measured), first_verified_at: executor.first_verified_at ?? nowMs }),
  });
  if (inventory !== null) await enterCollections(tx, executor.id);
  if (measured !== null) await syncGpuSlots(tx, executor.id, measured);
}

function offeredBy({ gpu, simulated }: Inventory) {
  return {
    machine_name: gpu.devices[0]?.name ?? null,
    driver_version: gpu.driver_version,
    simulated: simulated ? (1 as const) : (0 as const),
  };
}

/**
 * Returns true for a report that is older than the recorded verdict. Exception: a recorded verdict in the future does
 * not count, because the server's clock was set back.
 */
function isLate({ verdict_at: verdictAtMs }: ExecutorEntry, checkedAtMs: number, nowMs: number) {
  if (verdictAtMs === null || verdictAtMs > nowMs + MAX_CLOCK_SKEW_MS) return false;
  return checkedAtMs < verdictAtMs;
}

/** Returns false for a verdict on the offer as it was before its last change. */
function isOfThisOffer(
  executor: ExecutorEntry,
  report: HealthReport,
  checkedAtMs: number,
): boolean {
  const { offer_changed_at: changedAtMs, verdict_at: verdictAtMs } = executor;
  if (changedAtMs === null || (verdictAtMs ?? 0) > changedAtMs) return true;
  if (checkedAtMs < changedAtMs) return false;
  const devices = report.inventory?.gpu.devices ?? [];
  // The validator may not have received the change yet.
  return report.verdict !== 'verified' || isOffered(devices, executor);
}

function isOffered(devices: readonly { name: string }[], offer: ExecutorEntry): boolean {
  const { gpu_count: count, gpu_type: type } = offer;
  return devices.length === count && devices.every(({ name }) => matchesGpuType(name, type));
}

/**
 * Faults after which no container gets a GPU until they are repaired. Checks skip the GPU test on a rented host, so a
 * passing report of a rented host does not show that the fault has ended.
 */
const QUARANTINING: readonly string[] = ['GPU_RUNTIME_NVML_MISMATCH', 'GPU_RUNTIME_DEVICE_FAULT'];

/** Returns false for a verdict that must not end such a fault, because its checks did not test the GPUs. */
function endsQuarantine({ checks_json }: ExecutorEntry, report: HealthReport): boolean {
  if (report.verdict !== 'verified') return true;
  // Most stored checks name no such fault, and need not be parsed.
  if (!QUARANTINING.some((reason) => checks_json.includes(reason))) return true;
  const faults = CheckResult.array()
    .parse(JSON.parse(checks_json))
    .filter((check) => isBlocking(check) && QUARANTINING.includes(check.reason_code ?? ''));
  return faults.every(({ check_id: id }) =>
    report.checks.some(
      (check) => check.check_id === id && check.passed && check.message !== UNKNOWN,
    ),
  );
}

/** Message of a check without a result; such a check counts as passed. */
const UNKNOWN = 'unknown';

/** Returns the first failed check that prevents rentals. */
export function firstFailure(report: HealthReport): CheckResult | undefined {
  return report.checks.find(isBlocking);
}
