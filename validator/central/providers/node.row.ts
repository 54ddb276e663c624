/** How a node looks to providers (contract 10). Pure. */
import { type CheckResult, isBlocking } from '#shared/api/central/validator-routes.ts';
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { ExecutorEntry } from '../market/executors/executor.service.ts';
import { huidOf } from '../market/executors/executor-response.ts';
import { knownTypeName } from '../market/executors/machine-catalogue.ts';
import { noticeOf } from '../market/executors/notice-period.ts';
import type { BlockingReason, PortalNode, Verification } from './node.schemas.ts';
import { remedyOf } from './node-remedies.ts';

/** Where checks are explained; null: nowhere that a browser reaches. */
export type DocsUrl = string | null;

/** For a claim of before claims were written as the market writes types. */
const UNKNOWN_TYPE = 'unknown';

/** The row; of another provider's node only what is public anyway. */
export function nodeRow(executor: ExecutorEntry, isOwn: boolean, docsUrl: DocsUrl): PortalNode {
  return {
    id: executor.id,
    huid: huidOf(executor.id),
    gpu_type: knownTypeName(executor.gpu_type) ?? UNKNOWN_TYPE,
    gpu_count: executor.gpu_count,
    executor_ip_address: executor.ip_address,
    executor_ip_port: isOwn ? String(executor.port) : '',
    price_per_gpu: microToUsd(executor.price_uusd_per_gpu_hour),
    validator_hotkey: executor.validator_hotkey,
    miner_hotkey: executor.miner_hotkey,
    rented: executor.slots_free < executor.slots_total,
    status: statusOf(executor),
    min_gpu_count_for_rental: executor.min_gpu_count,
    available_gpu_count: executor.slots_free,
    notice_period: noticeOf(executor),
    blocking_reasons: isOwn ? blockingReasons(checksOf(executor), docsUrl) : [],
    created_at: naiveUtc(executor.created_at),
    updated_at: naiveUtc(executor.updated_at),
  };
}

/** What the last verdict rests on. */
export function verificationOf(executor: ExecutorEntry, docsUrl: DocsUrl): Verification {
  const checks = checksOf(executor);
  return {
    verified: executor.state === 'verified',
    checked_at: executor.verdict_at === null ? null : naiveUtc(executor.verdict_at),
    validator_hotkey: executor.validator_hotkey,
    score: null,
    checks: checks.map(({ check_id, passed, measured, required, message }) => ({
      name: check_id,
      passed,
      measured,
      required,
      message,
    })),
    blocking_reasons: blockingReasons(checks, docsUrl),
  };
}

function statusOf({ state, paused, opted_in }: ExecutorEntry): PortalNode['status'] {
  if (state !== 'verified') return state;
  return paused === 1 || opted_in === 0 ? 'paused' : 'available';
}

function checksOf(executor: ExecutorEntry): CheckResult[] {
  // Written by us from parsed reports: their form is known.
  return JSON.parse(executor.checks_json) as CheckResult[];
}

function blockingReasons(checks: readonly CheckResult[], docsUrl: DocsUrl): BlockingReason[] {
  return checks.filter(isBlocking).map((check) => {
    const code = check.reason_code ?? check.check_id;
    return {
      code,
      gating: true,
      message: check.message,
      measured: check.measured,
      required: check.required,
      fix: check.remediation,
      ...remedyOf(code),
      docs_url: docsUrl === null ? null : `${docsUrl}#checks`,
      kind: check.check_id,
    };
  });
}
