/** Wire schemas of waiting work, corrected differences and proofs of the ledger below /api/operator. */
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
                failing: 'Number of those whose last attempt failed.',
                oldest_due_at: 'Time at which the oldest became due (UTC); null if none is due.',
                oldest_age_seconds: 'Seconds since then; 0 if none is due.',
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
        queues: 'Work that waits, by kind.',
        pods: 'Pods that have not ended, by state.',
        nodes: 'Nodes by state, without removed ones.',
        mails: 'Mails by state; sent ones are deleted after a week.',
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
        before: 'Only entries with a lower number; absent for the newest.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });

const DriftKind = z.enum(['pod_lost', 'pod_left', 'pod_unknown']);
const DRIFT_KIND =
  '`pod_lost`: the node had lost a pod and received it again; `pod_left`: the node still ran an ended pod and was told to remove it; `pod_unknown`: the node runs a pod that is not in the database, which is left alone.';

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
                pod_id: z.uuid(),
                at: NaiveTime,
              },
              {
                seq: 'Number of the entry, ascending.',
                kind: DRIFT_KIND,
                corrected: 'False for `pod_unknown`, which an operator must resolve.',
                executor_id: 'Id of the node.',
                pod_id: 'Id of the pod.',
                at: 'Time at which it was found (UTC).',
              },
            ),
          ),
        ),
        next: z.int().nullable(),
      },
      {
        last_day: 'Numbers of the last 24 hours. Kinds without an entry are omitted.',
        entries: 'Entries, newest first; 10,000 are kept.',
        next: '`before` for the next page; null on the last page.',
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
                rule: 'Id of the broken invariant.',
                where: 'Transfer, account, group or hold that breaks it.',
                what: 'What is wrong, as a clause.',
              },
            ),
          ),
        ),
        more_findings: z.int(),
        error: z.string().nullable(),
      },
      {
        state: '`none` before the first proof, `running`, `done`, or `failed` if it could not end.',
        operator: 'Id of the account that requested it; null before the first.',
        started_at: 'Time at which it began (UTC); null before the first.',
        finished_at: 'Time at which it ended (UTC); null before that.',
        holds: 'True if every invariant holds; null unless done.',
        transfers: 'Number of transfers that were read; null unless done.',
        accounts: 'Number of ledger accounts; null unless done.',
        open_holds: 'Number of holds that are not resolved; null unless done.',
        balance_hash:
          'SHA-256 of all balances, recomputed from the journal, hex; null unless done.',
        findings: 'Broken invariants, 1000 at most.',
        more_findings: 'Number of findings that are not listed.',
        error: 'Why it failed; null unless failed.',
      },
    ),
  )
  .meta({ id: 'LedgerProof' });
export type LedgerProof = z.output<typeof LedgerProof>;
