/** Composes the platform: the database handle that notifies, the processes that share it, idempotency and the schedule. */
import { isPostgres } from '../../database/engine.ts';
import type { CentralPorts } from './central-deps.ts';
import { createNotifier, withNotifier } from './database/notifier.ts';
import { createIdempotency } from './idempotency/idempotency.ts';
import { createProcesses } from './processes.ts';
import { createRetention, type Sweeps } from './schedule/retention.ts';
import { createSchedule, type DueHandlers } from './schedule/schedule.ts';

export type Platform = ReturnType<typeof createPlatform>;

/** Nothing runs yet. */
export function createPlatform(ports: CentralPorts) {
  const { clock, random, log } = ports;
  const { notifier = createNotifier(clock) } = ports;
  const db = withNotifier(ports.db, notifier);
  const shared = isPostgres(db);
  const processes = createProcesses({ db, clock, log, bootId: random.uuid(), shared });
  const idempotency = createIdempotency({ db, clock, random, processes });

  return {
    db,
    notifier,
    processes,
    idempotency,

    /** The schedule of everything that is due at a time, the removal of old rows included. */
    createSchedule({ handlers, sweeps }: { handlers: DueHandlers; sweeps: Sweeps }) {
      const retention = createRetention({
        db,
        sweeps: { ...sweeps, 'idempotency-keys': idempotency.sweep },
      });
      const schedule = createSchedule({
        db,
        clock,
        random,
        log,
        notifier,
        handlers: { ...handlers, retention: retention.handler },
        begin: retention.begin,
      });
      return { ...schedule, removeOldRows: retention.runOnce };
    },
  };
}
