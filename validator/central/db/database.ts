/** Opens the central API's database and brings its schema up to date. */
import { Kysely, sql } from 'kysely';
import { foundation } from './migrations/0001-foundation.ts';
import { nodeSqliteDialect } from './node-sqlite-dialect.ts';
import { SQLITE_WORDS, type SqlWords } from './sql-words.ts';
import type { Database, Tables } from './tables.ts';

/** In order; the position counts as the schema's number. Forward only. */
const MIGRATIONS: readonly ((words: SqlWords) => string[])[] = [foundation];

/** `path` is a SQLite file or `:memory:`. The caller ends it with `destroy()`. */
export async function openCentralDatabase(path: string): Promise<Database> {
  const db = new Kysely<Tables>({ dialect: nodeSqliteDialect(path) });
  await migrate(db, SQLITE_WORDS);
  return db;
}

async function migrate(db: Database, words: SqlWords): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql
      .raw(
        `create table if not exists meta (name text primary key, value text not null) ${words.tableEnd}`,
      )
      .execute(tx);
    const row = await tx
      .selectFrom('meta')
      .select('value')
      .where('name', '=', 'schema')
      .executeTakeFirst();
    const present = Number(row?.value ?? 0);
    if (present > MIGRATIONS.length) {
      throw new Error(
        `the database has schema ${present}, this program knows ${MIGRATIONS.length}: run a newer version`,
      );
    }
    for (const migration of MIGRATIONS.slice(present)) {
      for (const statement of migration(words)) await sql.raw(statement).execute(tx);
    }
    await tx
      .insertInto('meta')
      .values({ name: 'schema', value: String(MIGRATIONS.length) })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet({ value: String(MIGRATIONS.length) }),
      )
      .execute();
  });
}
