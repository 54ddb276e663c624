/** Queries of epochs. */
import type { EpochRow, EpochState, StoreDb } from '../store/tables.ts';
import type { SignedEpoch } from './epoch-chain.ts';

const PAGE = 100;
const SIGNED_COLUMNS = [
  ...(['number', 'computed_ms', 'input_hash', 'policy_hash', 'result_hash'] as const),
  ...(['payload_json', 'previous', 'first_kept', 'signature'] as const),
] as const;

/** Newest epoch; undefined before the first. */
export function lastEpoch(db: StoreDb): Promise<EpochRow | undefined> {
  return db.selectFrom('epochs').selectAll().orderBy('number', 'desc').limit(1).executeTakeFirst();
}

export function findEpoch(db: StoreDb, number: number): Promise<EpochRow | undefined> {
  return db.selectFrom('epochs').selectAll().where('number', '=', number).executeTakeFirst();
}

/** Finds the epoch whose weights were posted with this body. */
export function findPosted(
  db: StoreDb,
  payloadJson: string,
): Promise<Pick<EpochRow, 'number'> | undefined> {
  return db
    .selectFrom('epochs')
    .select('number')
    .where('payload_json', '=', payloadJson)
    .executeTakeFirst();
}

/** Lists the signed columns, the signature and the state of the epochs before `number`, newest first. */
export function epochsBefore(
  db: StoreDb,
  number: number,
  limit: number,
): Promise<(SignedEpoch & Pick<EpochRow, 'state'>)[]> {
  return db
    .selectFrom('epochs')
    .select(SIGNED_COLUMNS)
    .select('state')
    .where('number', '<', number)
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}

/** Time at which the newest confirmed weights were computed; null before the first. */
export async function lastConfirmedMs(db: StoreDb): Promise<number | null> {
  const row = await db
    .selectFrom('epochs')
    .select('computed_ms')
    .where('state', '=', 'confirmed')
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.computed_ms ?? null;
}

export async function insertEpoch(db: StoreDb, row: EpochRow): Promise<void> {
  await db.insertInto('epochs').values(row).execute();
}

export async function setEpochState(db: StoreDb, number: number, state: EpochState): Promise<void> {
  await db.updateTable('epochs').set({ state }).where('number', '=', number).execute();
}

/**
 * Number of the newest epoch before `beforeMs` such that all earlier epochs are also before `beforeMs`; null if there
 * is none.
 */
export async function newestBefore(db: StoreDb, beforeMs: number): Promise<number | null> {
  const kept = await db
    .selectFrom('epochs')
    .select((eb) => eb.fn.min('number').as('number'))
    .where('computed_ms', '>=', beforeMs)
    .executeTakeFirst();
  const older = await db
    .selectFrom('epochs')
    .select((eb) => eb.fn.max('number').as('number'))
    .where('number', '<', kept?.number ?? Number.MAX_SAFE_INTEGER)
    .executeTakeFirst();
  return older?.number ?? null;
}

export async function deleteEpochsUpTo(db: StoreDb, upTo: number): Promise<void> {
  await db.deleteFrom('epochs').where('number', '<=', upTo).execute();
}

/** Streams the signed columns and signature of each epoch, oldest first, a page at a time. */
export async function* epochsInOrder(db: StoreDb): AsyncGenerator<SignedEpoch> {
  let page: SignedEpoch[];
  let after = 0;
  do {
    page = await db
      .selectFrom('epochs')
      .select(SIGNED_COLUMNS)
      .where('number', '>', after)
      .orderBy('number')
      .limit(PAGE)
      .execute();
    yield* page;
    after = page.at(-1)?.number ?? after;
  } while (page.length === PAGE);
}
