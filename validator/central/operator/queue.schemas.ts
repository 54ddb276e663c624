/** Wire schemas for waiting work, corrected differences, and proofs of the ledger below /api/operator. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { NaiveTime, queryNumber } from '../platform/wire.ts';

const MAX_PAGE = 1_000;

const Counted = z.array(
  z.object(
    described(
      { state: z.string(), count: z.int() },
      { state: 'Name of the state.', count: 'Number of entries.' },
    ),
  ),
);

export const Queues = z
  .object(
    described(
      {
        counted_at: NaiveTime,
        queues: z.array(
          z.object(
            described(
              {
                kind: z.string(),
                due: z.int(),
                failing: z.int(),
                oldest_due_at: NaiveTime.nullable(),
                oldest_age_seconds: z.number(),
              },
              {
                kind: 'Kind of work: `pod_sync`, `mail`, `webhook`, `charge`, `payout`, or a kind of scheduled work.',
                due: 'Number of entries that are due.',
                failing: 'Number of due entries whose last attempt failed.',
                oldest_due_at:
                  'Time at which the oldest due entry became due (UTC); null if none is due.',
                oldest_age_seconds:
                  'Seconds since the oldest due entry became due; 0 if none is due.',
              },
            ),
          ),
        ),
        pods: Counted,
        nodes: Counted,
        mails: Counted,
      },
      {
        counted_at: 'Time of the count (UTC).',
        queues: 'Waiting work by kind.',
        pods: 'Pods that have not ended, by state.',
        nodes: 'Nodes by state, without removed nodes.',
        mails: 'Mails by state. Sent mails are deleted after a week.',
      },
    ),
  )
  .meta({ id: 'Queues' });
export type Queues = z.output<typeof Queues>;

export const DriftQuery = z
  .object(
    described(
      {
        before: queryNumber(z.int().min(1)).optional(),
        limit: queryNumber(z.int().min(1).max(MAX_PAGE).default(100)),
      },
      {
        before: 'Only entries with a lower number; absent for the newest entries.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });

const DriftKind = z.enum(['pod_lost', 'pod_left', 'pod_unknown']);
const DRIFT_KIND =
  '`pod_lost`: the node had lost a pod and received it again; `pod_left`: the node still ran an ended pod and was requested to remove it; `pod_unknown`: the node runs a pod that is not in the database, and the sync does not change the pod.';

export const DriftList = z
  .object(
    described(
      {
        last_day: z.array(
          z.object(
            described(
              { kind: DriftKind, count: z.int() },
              { kind: DRIFT_KIND, count: 'Number of entries.' },
            ),
          ),
        ),
        entries: z.array(
          z.object(
            described(
              {
                seq: z.int(),
                kind: DriftKind,
                corrected: z.boolean(),
                executor_id: z.uuid(),
                executor_huid: z.string(),
                pod_id: z.uuid(),
                at: NaiveTime,
              },
              {
                seq: 'Number of the entry, ascending.',
                kind: DRIFT_KIND,
                corrected: 'False for `pod_unknown`, which an operator must resolve.',
                executor_id: 'Id of the node.',
                executor_huid: 'Readable name of the node.',
                pod_id: 'Id of the pod.',
                at: 'Time at which the difference was found (UTC).',
              },
            ),
          ),
        ),
        next: z.int().nullable(),
      },
      {
        last_day:
          'Number of entries of the last 24 hours by kind. Kinds without an entry are omitted.',
        entries: 'Entries, newest first. The newest 10,000 are retained.',
        next: 'Value of `before` for the next page; null on the last page.',
      },
    ),
  )
  .meta({ id: 'DriftList' });
export type DriftList = z.output<typeof DriftList>;

export const LedgerProof = z
  .object(
    described(
      {
        state: z.enum(['none', 'running', 'done', 'failed']),
        operator: z.string().nullable(),
        started_at: NaiveTime.nullable(),
        finished_at: NaiveTime.nullable(),
        holds: z.boolean().nullable(),
        transfers: z.int().nullable(),
        accounts: z.int().nullable(),
        open_holds: z.int().nullable(),
        balance_hash: z.string().nullable(),
        findings: z.array(
          z.object(
            described(
              { rule: z.string(), where: z.string(), what: z.string() },
              {
                rule: 'Id of the violated invariant.',
                where: 'Transfer, account, group or hold that violates the invariant.',
                what: 'Description of the violation, as a clause.',
              },
            ),
          ),
        ),
        more_findings: z.int(),
        error: z.string().nullable(),
      },
      {
        state:
          '`none` before the first proof, `running`, `done`, or `failed` if the audit could not end.',
        operator: 'Id of the account that requested the proof; null before the first proof.',
        started_at: 'Time at which the proof started (UTC); null before the first proof.',
        finished_at: 'Time at which the proof ended (UTC); null before the end.',
        holds: 'True if all invariants hold; null unless `done`.',
        transfers: 'Number of transfers that were read; null unless `done`.',
        accounts: 'Number of ledger accounts; null unless `done`.',
        open_holds: 'Number of open holds; null unless `done`.',
        balance_hash:
          'SHA-256 of all balances as recomputed from the journal, hex; null unless `done`.',
        findings: 'Violated invariants, at most 1000.',
        more_findings: 'Number of further violations, which are not listed.',
        error: 'Reason why the proof failed; null unless `failed`.',
      },
    ),
  )
  .meta({ id: 'LedgerProof' });
export type LedgerProof = z.output<typeof LedgerProof>;
