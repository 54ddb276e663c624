/** What a verdict changes: nothing else makes a node rentable or takes that away (specification, node health check). */
import {
  CheckResult,
  type HealthReport,
  isBlocking,
} from '#shared/api/central/validator-routes.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type ExecutorEntry, syncGpuSlots, updateExecutor } from '../executors/executor.service.ts';
import { figuresOf } from '../executors/node-figures.ts';

export type RecordedVerdict = {
  executor: ExecutorEntry;
  validatorHotkey: string;
  report: HealthReport;
  nowMs: number;
};

/** What a validator signs its requests by may be off by as much (contract 11). */
const CLOCKS_APART_MS = 300_000;

/** In one transaction. A report on older facts than the verdict on record changes nothing. */
export async function recordVerdict(tx: Db, verdict: RecordedVerdict): Promise<void> {
  const { executor, report, nowMs } = verdict;
  const { inventory } = report;
  // A clock that runs far ahead must not lock out later verdicts; by one that does so a little they are in order.
  const { checked_at_ms: saidMs } = report;
  const checkedAtMs = saidMs > nowMs + CLOCKS_APART_MS ? nowMs : saidMs;
  const seenMs = Math.max(Math.min(checkedAtMs, nowMs), executor.last_seen_at ?? 0);
  const seen = inventory === null ? {} : { last_seen_at: seenMs };
  const isMeant =
    !isLate(executor, checkedAtMs, nowMs) && isOfThisOffer(executor, report, checkedAtMs);
  if (report.verdict === 'withheld' || !isMeant || !endsQuarantine(executor, report)) {
    if (inventory !== null) await updateExecutor(tx, executor.id, seen);
    return;
  }
  await updateExecutor(tx, executor.id, {
    ...seen,
    state: report.verdict,
    validator_hotkey: verdict.validatorHotkey,
    verdict_at: checkedAtMs,
    checks_json: JSON.stringify(report.checks),
    updated_at: nowMs,
    ...(report.line ?? {}),
    ...(inventory === null
      ? {}
      : { inventory_json: JSON.stringify(inventory), ...figuresOf(inventory) }),
  });
  if (report.verdict !== 'verified' || inventory === null) return;
  await updateExecutor(tx, executor.id, {
    machine_name: inventory.gpu.devices[0]?.name ?? null,
    driver_version: inventory.gpu.driver_version,
    simulated: inventory.simulated ? 1 : 0,
    first_verified_at: executor.first_verified_at ?? nowMs,
  });
  await syncGpuSlots(tx, executor.id, inventory);
}

/** On record from a time that is yet to come, where our own clock was set back, there is nothing to be late for. */
function isLate({ verdict_at: verdictAtMs }: ExecutorEntry, checkedAtMs: number, nowMs: number) {
  if (verdictAtMs === null || verdictAtMs > nowMs + CLOCKS_APART_MS) return false;
  return checkedAtMs < verdictAtMs;
}

/** False for the first verdicts after a change of the offer that were still about the one before. */
function isOfThisOffer(
  executor: ExecutorEntry,
  report: HealthReport,
  checkedAtMs: number,
): boolean {
  const { offer_changed_at: changedAtMs, verdict_at: verdictAtMs } = executor;
  if (changedAtMs === null || (verdictAtMs ?? 0) > changedAtMs) return true;
  if (checkedAtMs < changedAtMs) return false;
  const devices = report.inventory?.gpu.devices ?? [];
  // The validator may not have heard of the change yet.
  return report.verdict !== 'verified' || isOffered(devices, executor);
}

function isOffered(devices: readonly { name: string }[], offer: ExecutorEntry): boolean {
  const { gpu_count: count, gpu_type: type } = offer;
  return devices.length === count && devices.every(({ name }) => matchesGpuType(name, type));
}

/** Faults after which GPUs reach no container, until they were seen to: a rented host is not tried, and stays away. */
const QUARANTINING: readonly string[] = ['GPU_RUNTIME_NVML_MISMATCH', 'GPU_RUNTIME_DEVICE_FAULT'];

/** Whether a verdict may put a node back that such a fault took off the market. */
function endsQuarantine({ checks_json }: ExecutorEntry, report: HealthReport): boolean {
  if (report.verdict !== 'verified') return true;
  const faults = CheckResult.array()
    .parse(JSON.parse(checks_json))
    .filter((check) => isBlocking(check) && QUARANTINING.includes(check.reason_code ?? ''));
  return faults.every(({ check_id: id }) =>
    report.checks.some(
      (check) => check.check_id === id && check.passed && check.message !== UNKNOWN,
    ),
  );
}

/** What a check says that could not be judged; it counts as passed. */
const UNKNOWN = 'unknown';

/** The first check that failed and counts. */
export function firstFailure(report: HealthReport): CheckResult | undefined {
  return report.checks.find(isBlocking);
}
