/** How the end of an operation is asked for. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';
import { GAVE_WAY, noteDrill } from './drill.record.ts';
import { tellOperation } from './operation.events.ts';
import { cancelUnsent, changeOpen, type Operation } from './operation.store.ts';

/** Asked for again, it changes nothing. Throws `bad_request` for one that is settled. */
export async function cancelOperation(
  tx: Db,
  deps: { clock: Clock; random: Random },
  operation: Operation,
  actor: Actor,
): Promise<void> {
  const nowMs = deps.clock.now();
  if (operation.state === 'CANCELLED') return;
  if (await cancelUnsent(tx, operation, nowMs)) {
    if (operation.table === 'backup_drills') {
      const error = { code: null, message: GAVE_WAY };
      return noteDrill(tx, deps, operation, { status: 'CANCELLED', actor, error });
    }
    const told = { outcome: 'status', actor, detail: 'cancelled' } as const;
    return tellOperation(tx, deps, operation, told);
  }
  if (operation.completed_at !== null) {
    throw new ApiError('bad_request', `It is ${operation.state} already`, {
      hint: 'Only what is PENDING or IN_PROGRESS can be cancelled.',
    });
  }
  if (operation.cancel_at === null) await changeOpen(tx, operation, { cancel_at: nowMs });
}
