/** Damage of SQLite files, as a failing disk causes it. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { openSqlite } from '#shared/runtime/sqlite.ts';

/** Overwrites the first page of a table. Other connections may have the file open; none may write meanwhile. */
export function damageTable(path: string, table: string): void {
  const database = openSqlite(path);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const page = database
    .prepare('SELECT rootpage AS page FROM sqlite_schema WHERE name = :table')
    .get({ table });
  const size = database.prepare('PRAGMA page_size').get();
  database.close();
  const bytes = Number(size?.['page_size']);
  overwrite(path, (Number(page?.['page']) - 1) * bytes, Buffer.alloc(bytes, 0xa5));
}

/** Overwrites the header, so that SQLite does not recognise the file. */
export function damageHeader(path: string): void {
  overwrite(path, 0, Buffer.alloc(100, 0x41));
}

function overwrite(path: string, position: number, bytes: Uint8Array): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, position);
  closeSync(file);
}
