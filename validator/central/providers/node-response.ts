/** Maps nodes and their pods to the portal's responses. Pure. */

import { createHmac } from 'node:crypto';
import { type CheckResult, isBlocking } from '#shared/api/central/validator-routes.ts';
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { deriveKey } from '../accounts/auth/derived-key.ts';
import type { ExecutorEntry } from '../market/executors/executor.service.ts';
import { huidOf, locationOf } from '../market/executors/executor-response.ts';
import { knownTypeName } from '../market/executors/machine-catalogue.ts';
import { noticeOf } from '../market/executors/notice-period.ts';
import { statusOf } from '../market/pods/pod-response.ts';
import type { Pod } from '../platform/database/tables.ts';
import type { BlockingReason, NodePod, PortalNode, Verification } from './node.schemas.ts';
import { remedyOf } from './node-remedies.ts';

/** URL of the documentation of checks; null if none is configured. */
export type DocsUrl = string | null;

/** GPU type of nodes that were added before GPU types were validated. */
const UNKNOWN_TYPE = 'unknown';

/** Returns the node's row. For a node of another provider, the row has only the public fields. */
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
    status: nodeStatus(executor),
    min_gpu_count_for_rental: executor.min_gpu_count,
    available_gpu_count: executor.slots_free,
    notice_period: noticeOf(executor),
    location: locationOf(executor),
    location_check: executor.location_check,
    blocking_reasons: isOwn ? blockingReasons(executor, docsUrl) : [],
    created_at: naiveUtc(executor.created_at),
    updated_at: naiveUtc(executor.updated_at),
  };
}

/** Returns the checks of the last verdict. */
export function verificationOf(executor: ExecutorEntry, docsUrl: DocsUrl): Verification {
  const checks = checksOf(executor);
  const { port } = executor;
  return {
    verified: executor.state === 'verified',
    checked_at: executor.verdict_at === null ? null : naiveUtc(executor.verdict_at),
    validator_hotkey: executor.validator_hotkey ?? '',
    score: null,
    checks: checks.map((check) => ({
      name: check.check_id,
      passed: check.passed,
      // Early versions stored results without the mode.
      gating: check.mode === undefined || check.mode === 'enforce',
      measured: check.measured,
      required: check.required,
      message: check.message,
      fix: check.passed ? '' : check.remediation,
      ...(check.passed ? NO_REMEDY_NEEDED : commandsOf(check, port)),
    })),
    blocking_reasons: blockingReasons(executor, docsUrl),
  };
}

const NO_REMEDY_NEEDED = { fix_command: null, verify_command: null };

function commandsOf({ reason_code: code, check_id: id }: CheckResult, port: number) {
  const { fix_command, verify_command } = remedyOf(code ?? id, port);
  return { fix_command, verify_command };
}

function nodeStatus({ state, paused, opted_in }: ExecutorEntry): PortalNode['status'] {
  if (state !== 'verified') return state;
  return paused === 1 || opted_in === 0 ? 'paused' : 'available';
}

function checksOf(executor: ExecutorEntry): CheckResult[] {
  // The column contains only validated reports.
  return JSON.parse(executor.checks_json) as CheckResult[];
}

/**
 * Returns the reasons why the node receives no new rentals: first the decisions of its provider and the operator, then
 * failed checks.
 */
function blockingReasons(executor: ExecutorEntry, docsUrl: DocsUrl): BlockingReason[] {
  const failed = checksOf(executor).filter(isBlocking);
  const reasons = failed.map((check) => failedCheck(check, executor.port, docsUrl));
  return [...decisionsOn(executor), ...reasons];
}

function failedCheck(check: CheckResult, port: number, docsUrl: DocsUrl): BlockingReason {
  const code = check.reason_code ?? check.check_id;
  return {
    code,
    gating: true,
    message: check.message,
    measured: check.measured,
    required: check.required,
    fix: check.remediation,
    ...remedyOf(code, port),
    docs_url: docsUrl === null ? null : `${docsUrl}#checks`,
    kind: check.check_id,
  };
}

/** Returns the decisions that exclude a node from the market, regardless of its checks. */
function decisionsOn({
  banned_at,
  opted_in,
  paused,
  unknown_pods,
}: ExecutorEntry): BlockingReason[] {
  const decisions = [
    banned_at !== null && {
      code: 'PROVIDER_BANNED',
      message: 'The operator has banned this provider',
      measured: 'banned',
      required: 'not banned',
      fix: 'Contact the operator of the marketplace.',
    },
    opted_in === 0 && {
      code: 'PROVIDER_OPTED_OUT',
      message: 'The provider has opted out, so its nodes accept no new rentals',
      measured: 'opted out',
      required: 'opted in',
      fix: 'Opt in again: POST /providers/opt-in with {"opt_in_status": true}.',
    },
    paused === 1 && {
      code: 'NODE_PAUSED',
      message: 'The provider has paused this node, or its announced removal has started',
      measured: 'paused',
      required: 'not paused',
      fix: 'Resume it: POST /executors/{id}/resume.',
    },
    unknown_pods > 0 && {
      code: 'UNKNOWN_PODS',
      message: 'The node runs pods that the market does not know',
      measured: `${unknown_pods} unknown pods`,
      required: 'only pods of the market',
      fix: 'The operator of the marketplace decides about them. Do not remove them: renters may own them.',
    },
  ].filter((decision) => decision !== false);
  return decisions.map((decision) => ({ ...NO_COMMANDS, ...decision, gating: true }));
}

const NO_COMMANDS = {
  fix_command: null,
  verify_command: null,
  requires: null,
  docs_url: null,
  kind: 'decision',
} as const;

const REFERENCE_CHARS = 22;

/**
 * Returns the pseudonym of a renter. It is the same for all pods on the nodes of one provider, and different for each
 * provider.
 */
export type RenterReference = (providerId: string, accountId: string) => string;

/**
 * Creates the function that returns pseudonyms: a hash of the account id. The hash is keyed with the deployment's
 * secret, so that a provider cannot test whether a pseudonym belongs to an account id.
 */
export function createRenterReference({ secret }: { secret: Uint8Array }): RenterReference {
  const key = deriveKey(secret, 'renter-reference');
  return (providerId, accountId) =>
    createHmac('sha256', key)
      .update(`${providerId} ${accountId}`)
      .digest('base64url')
      .slice(0, REFERENCE_CHARS);
}

export function podsForProvider(
  pods: readonly Pod[],
  providerId: string,
  renterReference: RenterReference,
): NodePod[] {
  return pods
    .filter((pod) => pod.state !== 'deleting')
    .map((pod) => ({
      pod_id: pod.id,
      pod_name: pod.pod_name,
      status: statusOf(pod),
      gpu_count: pod.gpu_count,
      price: microToUsd(pod.price_uusd_per_gpu_hour * pod.gpu_count),
      created_at: naiveUtc(pod.created_at),
      removal_scheduled_at: pod.removal_at === null ? null : naiveUtc(pod.removal_at),
      renter_ref: renterReference(providerId, pod.account_id),
    }));
}
