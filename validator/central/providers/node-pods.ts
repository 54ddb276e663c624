/** The pods on a node as its provider sees them: not whose they are (contract 10). */
import { createHmac } from 'node:crypto';
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { deriveKey } from '../accounts/auth/derived-key.ts';
import { statusOf } from '../market/pods/pod-response.ts';
import type { Pod } from '../platform/database/tables.ts';
import type { NodePod } from './node.schemas.ts';

const REFERENCE_CHARS = 22;

/** Who a renter is to one provider: always the same, to another provider somebody else. */
export type RenterReference = (providerId: string, accountId: string) => string;

/** Under the deployment's secret, so that nobody finds an account by trying. */
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
