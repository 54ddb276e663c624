/** Outbox messages for health reports, and their delivery to the central API. */
import type { z } from 'zod';
import type {
  ExecutorHealthCheckRequest,
  HealthReport,
} from '#shared/api/central/validator-routes.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { CentralClient } from '../central-client.ts';
import type { Facts } from '../checks/check.ts';
import { type Delivery, type Outcome, outcomeOf } from '../store/outbox.service.ts';
import type { Message } from '../store/outbox.store.ts';

/**
 * The central API stores the last verdict of an executor; `withheld` does not change the stored verdict. So a newer
 * verdict replaces all waiting messages, and a withheld one replaces only withheld ones.
 */
const RANK: Record<HealthReport['verdict'], number> = { withheld: 0, failed: 1, verified: 1 };

const OK = 200;
const NOT_FOUND = 404;

/** Returns the message about one inspection, with the rank up to which it replaces waiting messages. */
export function healthMessage(
  { executor }: Facts,
  report: HealthReport,
  nowMs: number,
): { message: Message; replaces: number } {
  const request: z.input<typeof ExecutorHealthCheckRequest> = {
    miner_address: executor.executor_ip_address,
    miner_port: Number(executor.executor_ip_port),
    miner_hotkey: executor.miner_hotkey,
    container_port: Number(executor.executor_ip_port),
    rental_in_progress: executor.rented,
    gpu_uuids: report.inventory?.gpu.devices.map((device) => device.uuid) ?? [],
    executor_id: executor.id,
    report,
  };
  const rank = RANK[report.verdict];
  const message: Message = {
    kind: 'health-report',
    subject: executor.id,
    partitionKey: `health-report ${executor.id}`,
    rank,
    body: JSON.stringify(request),
    next_ms: nowMs,
  };
  return { message, replaces: rank };
}

/** Posts health reports. A 404 `node_not_found` counts as delivered: the executor was removed. */
export function createHealthDelivery(central: Pick<CentralClient, 'postHealth'>): Delivery {
  async function send(body: string, key: string): Promise<Outcome> {
    const { status, text } = await central.postHealth(body, key);
    const isGone = status === NOT_FOUND && text.includes('"node_not_found"');
    return status === OK || isGone
      ? { state: 'delivered' }
      : outcomeOf(status, `${status}: ${text}`);
  }

  return {
    deliver: ({ body, idempotency_key: key }) =>
      send(body, key).catch((error: unknown) => ({
        state: 'unavailable',
        reason: messageOf(error),
      })),
    // Nothing to do: the next inspection sends a new report.
    onParked: async () => undefined,
  };
}
