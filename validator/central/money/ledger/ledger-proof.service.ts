/** Audits of the ledger that operators request. Each audit runs in the background, and its result is stored. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database, Db, LedgerProof } from '../../platform/database/tables.ts';
import type { LedgerAudit } from '../../platform/ports.ts';
import type { Processes } from '../../platform/processes.ts';

/** Maximum number of retained results. */
const MAX_PROOFS = 100;

export type LedgerProofsDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Pick<Processes, 'bootId' | 'isAlive'>;
  /** Audits one snapshot of the ledger. Rejects when `signal` aborts. */
  audit(signal: AbortSignal): Promise<LedgerAudit>;
  stopping: AbortSignal;
};

export type LedgerProofs = ReturnType<typeof createLedgerProofs>;

export function createLedgerProofs(deps: LedgerProofsDeps) {
  const { db, clock, log, processes, audit, stopping } = deps;

  /**
   * Stores the result. If the server is stopping, the row does not change: the row of a dead process counts as failed.
   */
  async function run(seq: number): Promise<void> {
    const outcome = await audit(stopping).then(
      (result) => ({ state: 'done', result_json: JSON.stringify(result) }) as const,
      (error: unknown) => ({ state: 'failed', error: messageOf(error) }) as const,
    );
    if (stopping.aborted) return;
    await db
      .updateTable('ledger_proofs')
      .set({ ...outcome, finished_at: clock.now() })
      .where('seq', '=', seq)
      .execute();
  }

  /** A running audit of a dead process has failed. */
  async function settled(handle: Db, row: LedgerProof): Promise<LedgerProof> {
    if (row.state !== 'running' || (await processes.isAlive(handle, row.boot_id))) return row;
    return { ...row, state: 'failed', error: 'The process that ran the audit has ended' };
  }

  async function newest(handle: Db): Promise<LedgerProof | null> {
    const row = await handle
      .selectFrom('ledger_proofs')
      .selectAll()
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row === undefined ? null : settled(handle, row);
  }

  return {
    /** Returns the newest proof; null before the first proof. */
    newest: () => newest(db),

    /** Starts an audit. Throws `conflict` while another audit runs. */
    async begin(operator: string): Promise<LedgerProof> {
      const row = await db.transaction().execute(async (tx) => {
        if ((await newest(tx))?.state === 'running') {
          throw new ApiError('conflict', 'A proof of the ledger is already running', {
            hint: 'Read its result with GET /operator/ledger-proof.',
          });
        }
        const started = { boot_id: processes.bootId, operator, started_at: clock.now() };
        const nothing = { finished_at: null, result_json: null, error: null };
        const added = await tx
          .insertInto('ledger_proofs')
          .values({ ...started, ...nothing, state: 'running' })
          .returningAll()
          .executeTakeFirstOrThrow();
        await tx
          .deleteFrom('ledger_proofs')
          .where('seq', '<=', added.seq - MAX_PROOFS)
          .execute();
        return added;
      });
      void run(row.seq).catch((error: unknown) =>
        log.error({ err: error }, 'storing the proof of the ledger failed'),
      );
      return row;
    },
  };
}
