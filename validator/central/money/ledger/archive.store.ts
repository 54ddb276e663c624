/** Queries on archived months of the ledger, and the deletion of their rows. */
import { sql } from 'kysely';
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db, LedgerArchive, LedgerMonth } from '../../platform/database/tables.ts';

/** Causes of the groups that are deleted. The others are needed later: they must stay unique, or resolve holds. */
const REMOVED = ['usage', 'referral', 'referral-back'];
const USAGE = 'usage';

/** Archived months, oldest first. */
export function listArchives(db: Db): Promise<LedgerArchive[]> {
  return db.selectFrom('ledger_archives').selectAll().orderBy('month').execute();
}

/** The last archived month; undefined if none is. */
export function lastArchive(db: Db): Promise<LedgerArchive | undefined> {
  return db
    .selectFrom('ledger_archives')
    .selectAll()
    .orderBy('month', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Records that a verified file contains the month. From now on, rows of the month may be deleted. */
export async function insertArchive(
  tx: Db,
  month: LedgerMonth,
  { file, atMs }: { file: string; atMs: number },
): Promise<void> {
  const { first_seq, last_seq } = month;
  const groups = await tx
    .selectFrom('transfers')
    .select((eb) => [eb.fn.min('group_id').as('first'), eb.fn.max('group_id').as('last')])
    .where('seq', '>=', first_seq)
    .where('seq', '<=', last_seq)
    .executeTakeFirst();
  await tx
    .insertInto('ledger_archives')
    .values({
      month: month.month,
      file,
      first_seq,
      last_seq,
      first_group: groups?.first ?? 0,
      last_group: groups?.last ?? 0,
      archived_at: atMs,
    })
    .onConflict((conflict) => conflict.column('month').doNothing())
    .execute();
}

const removable = prepared(
  (
    db,
    slots: Slots<{
      firstSeq: number;
      lastSeq: number;
      lastGroup: number;
      after: number;
      limit: number;
    }>,
  ) =>
    db
      .selectFrom('ledger_groups')
      .select(['id', 'cause_type', 'cause_id'])
      .where('id', '>', slots.after)
      .where('id', '<=', slots.lastGroup)
      .where('cause_type', 'in', REMOVED)
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom('transfers')
            .select('seq')
            .whereRef('transfers.group_id', '=', 'ledger_groups.id')
            .where('seq', '>=', slots.firstSeq)
            .where('seq', '<=', slots.lastSeq),
        ),
      )
      .orderBy('id')
      .limit(slots.limit),
);

/**
 * Deletes up to `limit` groups of an archived month after the group `after`, with their transfers of the month and
 * their settlements. Returns the last group; null if none is left.
 */
export async function deleteArchived(
  tx: Db,
  archive: LedgerArchive,
  { after, limit }: { after: number; limit: number },
): Promise<number | null> {
  const { first_seq: firstSeq, last_seq: lastSeq, last_group: lastGroup } = archive;
  const { rows } = await removable(tx, { firstSeq, lastSeq, lastGroup, after, limit });
  const ids = rows.map(({ id }) => id);
  const last = ids.at(-1);
  if (last === undefined) return null;
  await tx
    .deleteFrom('transfers')
    .where('group_id', 'in', ids)
    .where('seq', '>=', firstSeq)
    .where('seq', '<=', lastSeq)
    .execute();
  // A group whose transfers are in two months is deleted with the second.
  const deleted = await tx
    .deleteFrom('ledger_groups')
    .where('id', 'in', ids)
    .where('id', 'not in', (eb) =>
      eb.selectFrom('transfers').select('group_id').where('group_id', 'in', ids),
    )
    .returning(['cause_type', 'cause_id'])
    .execute();
  const ticks = deleted
    .filter(({ cause_type: type }) => type === USAGE)
    .map(({ cause_id: id }) => tickOf(id));
  await deleteTicks(tx, { rows: JSON.stringify(ticks) });
  return last;
}

/** Pod and number of a settlement, from the id of its cause. */
function tickOf(causeId: string): { pod_id: string; tick_seq: number } {
  const at = causeId.lastIndexOf(':');
  return { pod_id: causeId.slice(0, at), tick_seq: Number(causeId.slice(at + 1)) };
}

const TICK = { pod_id: 'text', tick_seq: 'bigint' } as const;

const deleteTicks = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .deleteFrom('billing_ticks')
    .where(
      (eb) =>
        sql<boolean>`(pod_id, tick_seq) in ${eb
          .selectFrom(jsonRows(db, rows, TICK).as('input'))
          .select(['input.pod_id', 'input.tick_seq'])}`,
    ),
);
