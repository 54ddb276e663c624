/**
 * Columns that are sealed at rest: environments of templates, which often contain credentials, and the copies of them
 * in pods and in stored responses. Results of the handle open them when they are read, and then throw if a value was
 * sealed with another secret; the stores seal them before every write.
 */
import { type KyselyPlugin, sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import type { Sealing } from '#shared/signing/sealing.ts';
import type { Database, Db } from './tables.ts';

const OF_TEMPLATES = ['environment_json'] as const;
const OF_PODS = ['template_json', 'spec_json', 'previous_json'] as const;
/** Responses of requests with an Idempotency-Key. */
const OF_IDEMPOTENCY = ['body'] as const;
/** The names are used in no other table. */
const COLUMNS: readonly string[] = [...OF_TEMPLATES, ...OF_PODS, ...OF_IDEMPOTENCY];

/** Prefix of sealed values. The JSON of unsealed values never begins with it. */
const PREFIX = 'sealed:';

type SealingPlugin = KyselyPlugin & { columnSealing: Sealing };
type Row = Record<string, unknown>;

/**
 * Returns a handle that opens sealed columns in results, and through which `sealed` seals them. Rows that are not
 * sealed yet are returned as they are.
 */
export function withSealedColumns<Handle extends Db>(db: Handle, sealing: Sealing): Handle {
  const plugin: SealingPlugin = {
    columnSealing: sealing,
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      const [first] = result.rows;
      const names = first === undefined ? [] : COLUMNS.filter((name) => name in first);
      if (names.length > 0) for (const row of result.rows) openIn(row, names, sealing);
      return result;
    },
  };
  return db.withPlugin(plugin) as Handle;
}

/**
 * Replaces sealed values by properties that open them when they are first read, because most readers of whole rows read
 * none of them.
 */
function openIn(row: Row, names: readonly string[], sealing: Sealing): void {
  for (const name of names) {
    const value = row[name];
    if (typeof value !== 'string' || !value.startsWith(PREFIX)) continue;
    let opened: string | null = null;
    Object.defineProperty(row, name, {
      enumerable: true,
      get() {
        opened ??= sealing.open(value.slice(PREFIX.length), name);
        return opened;
      },
    });
  }
}

/** Returns the values to store for `row`. Without a sealing handle, as in tests of single stores, returns `row`. */
export function sealed<Values extends object>(db: Db, row: Values): Values {
  const sealing = sealingOf(db);
  if (sealing === null) return row;
  const values = Object.entries(row).map(([name, value]) => {
    const isSealed = COLUMNS.includes(name) && typeof value === 'string';
    return [name, isSealed ? PREFIX + sealing.seal(value, name) : value] as const;
  });
  return Object.fromEntries(values) as Values;
}

function sealingOf(db: Db): Sealing | null {
  const plugin = db.getExecutor().plugins.find((each) => 'columnSealing' in each);
  return plugin === undefined ? null : (plugin as SealingPlugin).columnSealing;
}

/** Row of the table `meta` with a text that was sealed with the secret of this database. */
export const SECRET_PROOF = 'secret_proof';

/**
 * Rejects with ConfigError if the database was sealed with another secret: nothing could be read, and new rows would be
 * sealed with a second secret. The first start records the secret, if it opens what an earlier version has sealed.
 */
export async function requireOwnSecret(db: Database, sealing: Sealing): Promise<void> {
  const plain = db.withoutPlugins();
  const readProof = () =>
    plain.selectFrom('meta').select('value').where('name', '=', SECRET_PROOF).executeTakeFirst();
  const proof = await readProof();
  if (proof !== undefined) return requireOpens(sealing, proof.value, SECRET_PROOF);
  const earlier = await plain
    .selectFrom('templates')
    .select('environment_json as value')
    .where('environment_json', 'like', `${PREFIX}%`)
    .executeTakeFirst();
  if (earlier !== undefined)
    requireOpens(sealing, earlier.value.slice(PREFIX.length), 'environment_json');
  await plain
    .insertInto('meta')
    .values({ name: SECRET_PROOF, value: sealing.seal(SECRET_PROOF, SECRET_PROOF) })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  // Another process may have recorded its secret first.
  requireOpens(sealing, (await readProof())?.value ?? '', SECRET_PROOF);
}

function requireOpens(sealing: Sealing, text: string, place: string): void {
  try {
    sealing.open(text, place);
  } catch (cause) {
    throw new ConfigError(
      'the secret (CENTRAL_SECRET_FILE) is not the one with which this database was written: restore the original file',
      { cause },
    );
  }
}

const BATCH = 200;
/** Row of the table `meta` that records that no unsealed rows are left. */
const DONE = { name: 'sealed_columns', value: '1' };

/**
 * Seals templates and pods that earlier versions have stored; responses that earlier versions have stored expire after
 * a day. Can end at any instant and be repeated, also by several processes at the same time.
 */
export async function sealStoredRows(db: Database): Promise<void> {
  const done = await db
    .selectFrom('meta')
    .select('value')
    .where('name', '=', DONE.name)
    .executeTakeFirst();
  if (done?.value === DONE.value) return;
  for (const column of OF_TEMPLATES) await sealColumn(db, 'templates', column);
  for (const column of OF_PODS) await sealColumn(db, 'pods', column);
  await db
    .insertInto('meta')
    .values(DONE)
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: DONE.value }))
    .execute();
}

/** Updates a value only if it has not changed since it was read. */
async function sealColumn(db: Database, table: string, column: string): Promise<void> {
  const [name, of] = [sql.id(column), sql.table(table)];
  for (;;) {
    const plain = sql<{ id: string; value: string }>`select id, ${name} as value from ${of}
      where ${name} not like ${`${PREFIX}%`} limit ${BATCH}`;
    const { rows } = await plain.execute(db);
    if (rows.length === 0) return;
    for (const { id, value } of rows) {
      const next = sealed(db, { [column]: value })[column];
      const where = sql`id = ${id} and ${name} = ${value}`;
      await sql`update ${of} set ${name} = ${next} where ${where}`.execute(db);
    }
  }
}
