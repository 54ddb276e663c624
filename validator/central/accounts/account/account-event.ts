import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';

/** Records an event of type `account`. `detail` is a short phrase for people and must not contain addresses. */
export function recordAccountEvent(
  tx: Db,
  deps: { clock: Clock; random: Random },
  accountId: string,
  actor: Actor,
  detail: string,
): Promise<void> {
  return recordEvent(tx, deps, {
    accountId,
    subEventType: 'account.success',
    actor,
    reason: 'user_initiated',
    payload: { pod_name: null, node: null, detail },
  });
}
