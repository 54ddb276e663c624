/** `backup` and `restore` of the central API and of the validator: copies of their database file. */
import { parseArgs } from 'node:util';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type Backup, backupFolderOf, listBackups } from './database-backup.ts';
import type { BackupPlan } from './database-watch.ts';
import { inFileThread } from './file-thread.ts';
import { isFileAddress, isPostgresAddress, requireDatabaseFile } from './open-database.ts';
import { type DatabaseLocation, KINDS } from './ownership.ts';
import { restoreDatabase } from './restore-database.ts';

export type BackupCommand = {
  /** Arguments, the first of which is `backup` or `restore`. */
  args: readonly string[];
  /** The database that the environment configures. */
  usual: DatabaseLocation;
  plan: BackupPlan;
};

type Ports = { clock: Clock; print(text: string): void };

const MAX_KEEP = 1_000;

/** Rejects with ConfigError for wrong arguments and for a database on a server, with another error if it fails. */
export async function runBackupCommand(command: BackupCommand, ports: Ports): Promise<void> {
  const { words, location, plan, list } = argumentsIn(command);
  const [name, from, ...more] = words;
  requireFile(location);
  const backups = listBackups(location.address, plan.folder ?? backupFolderOf(location.address));
  if (name === 'backup' && from === undefined) return backUp(location, plan, ports);
  if (name === 'restore' && list && from === undefined) return print(backups, ports);
  if (name !== 'restore' || list || more.length > 0)
    throw new ConfigError(`unknown command ${words.join(' ')}; see --help`);
  return restore(location, from ?? newestOf(backups, location), ports);
}

async function backUp(
  location: DatabaseLocation,
  plan: BackupPlan,
  { clock, print: write }: Ports,
): Promise<void> {
  await requireDatabaseFile(location);
  const { address: path } = location;
  const { keep, folder = backupFolderOf(path) } = plan;
  const request = { path, folder, keep, nowMs: clock.now() };
  write(`${await inFileThread({ kind: 'backup', request })}\n`);
}

async function restore(
  location: DatabaseLocation,
  from: string,
  { clock, print: write }: Ports,
): Promise<void> {
  const { replaced } = await restoreDatabase(location, from, clock.now());
  write(`${location.address} is now a copy of ${from}\n`);
  if (replaced !== null) write(`the replaced database is kept in ${replaced}\n`);
}

function print(backups: readonly Backup[], { print: write }: Ports): void {
  for (const { path, atMs } of backups) write(`${naiveUtc(atMs).slice(0, 19)}Z  ${path}\n`);
}

function newestOf([newest]: readonly Backup[], { address, kind }: DatabaseLocation): string {
  if (newest !== undefined) return newest.path;
  throw new ConfigError(
    `there is no backup of the ${KINDS[kind].name} ${address}: name the file of a backup`,
  );
}

function argumentsIn({ args, usual, plan }: BackupCommand) {
  const option = KINDS[usual.kind].option;
  const { values, positionals } = parsed(args, option);
  const file = values[option];
  const keep = values['keep'] === undefined ? plan.keep : Number(values['keep']);
  if (!Number.isInteger(keep) || keep < 1 || keep > MAX_KEEP)
    throw new ConfigError(`--keep takes a number from 1 to ${MAX_KEEP}`);
  const location =
    typeof file === 'string' ? { ...usual, address: file, variable: `--${option}` } : usual;
  // Another database has its backups beside it, unless an option names their folder.
  const folder = values['folder'] ?? (typeof file === 'string' ? undefined : plan.folder);
  return { words: positionals, location, plan: { ...plan, keep, folder }, list: values.list };
}

function parsed(args: readonly string[], option: string) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        [option]: { type: 'string' },
        folder: { type: 'string' },
        keep: { type: 'string' },
        list: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    const [first] = messageOf(error).split('. ');
    throw new ConfigError(`${first}; see --help`);
  }
}

function requireFile({ address, variable, kind }: DatabaseLocation): void {
  if (isFileAddress(variable, address)) return;
  if (!isPostgresAddress(address)) throw new ConfigError(`${variable} does not name a file`);
  const place = `--dbname='${withoutPassword(address)}'`;
  throw new ConfigError(
    `the ${KINDS[kind].name} is on a PostgreSQL server: back it up with pg_dump --format=custom --file=FILE ${place}, ` +
      `and restore it, while no process uses it, with pg_restore --clean --if-exists ${place} FILE. ` +
      'Both read the password from ~/.pgpass (or PGPASSFILE), so that ps does not show it',
  );
}

/** Returns the address of a server without its password. */
function withoutPassword(address: string): string {
  const url = URL.parse(address);
  if (url === null || address.includes("'")) return 'postgres://user@host:port/database';
  url.password = '';
  url.searchParams.delete('password');
  return url.href;
}
