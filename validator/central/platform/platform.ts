/**
 * Composes the platform: the database handle that sends notifications and opens sealed columns, the processes that
 * share the database, idempotency and the schedule.
 */
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Sealing } from '#shared/signing/sealing.ts';
import { isPostgres } from '../../database/engine.ts';
import type { CentralPorts } from './central-deps.ts';
import { createNotifier, withNotifier } from './database/notifier.ts';
import { requireOwnSecret, sealStoredRows, withSealedColumns } from './database/sealed-columns.ts';
import { createIdempotency } from './idempotency/idempotency.ts';
import { createProcesses } from './processes.ts';
import { createRetention, type Sweeps } from './schedule/retention.ts';
import { createSchedule, type DueHandlers } from './schedule/schedule.ts';

export type Platform = ReturnType<typeof createPlatform>;

/** Composes the parts without starting them. `sealing` seals columns at rest. */
export function createPlatform(
  ports: CentralPorts,
  { trust, sealing, pollMs = 0 }: { trust: ClockTrust; sealing: Sealing; pollMs?: number },
) {
  const { clock, random, log } = ports;
  const { notifier = createNotifier(clock) } = ports;
  const db = withSealedColumns(withNotifier(ports.db, notifier), sealing);
  const shared = isPostgres(db);
  const processes = createProcesses({ db, clock, log, bootId: random.uuid(), shared, pollMs });
  const idempotency = createIdempotency({ db, clock, random, processes });

  return {
    db,
    notifier,
    processes,
    idempotency,

    /** Must complete before the first request is served. */
    async prepare() {
      await requireOwnSecret(db, sealing);
      await sealStoredRows(db);
    },

    /** Creates the schedule, which runs every kind of work that has a due time, including the removal of old rows. */
    createSchedule({ handlers, sweeps }: { handlers: DueHandlers; sweeps: Sweeps }) {
      const retention = createRetention({
        db,
        sweeps: { ...sweeps, 'idempotency-keys': idempotency.sweep },
        pollMs,
      });
      const schedule = createSchedule({
        db,
        clock,
        random,
        log,
        notifier,
        trust,
        handlers: { ...handlers, retention: retention.handler },
        pollMs,
        begin: retention.begin,
      });
      return { ...schedule, removeOldRows: retention.runOnce };
    },
  };
}
