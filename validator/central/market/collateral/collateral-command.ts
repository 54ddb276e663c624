/** `npm run central -- collateral list|add|remove`: manages deposits in the database, also while a central API runs. */
import { parseArgs } from 'node:util';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type CentralPlace, namedDatabase } from '../../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../../platform/database/database.ts';
import { CollateralSubject } from './collateral.schemas.ts';
import { addDeposit, listDeposits, removeDeposit } from './collateral.service.ts';

const MAX_NOTE = 200;

export type CollateralCommand = {
  /** Arguments after `collateral`. */
  args: readonly string[];
  /** `postgres://…` or a SQLite file. */
  usualDatabase: string;
};

/** `print` receives the result, `complain` receives errors. */
type Ports = { clock: Clock; print(text: string): void; complain(text: string): void };

/** Returns true on success. Rejects with ConfigError for an unknown command and for a missing database. */
export async function runCollateralCommand(
  command: CollateralCommand,
  ports: Ports,
): Promise<boolean> {
  const { words, databaseFile } = argumentsIn(command.args);
  const target = namedDatabase({ databaseFile, usualDatabase: command.usualDatabase });
  const [name, ...rest] = words;
  if (name === 'list' && rest.length === 0) return list(target, ports);
  const [subject = '', ...note] = rest;
  if (name === 'add') return add(target, subjectIn(subject), note.join(' '), ports);
  if (name === 'remove' && note.length === 0) return remove(target, subjectIn(subject), ports);
  throw new ConfigError(`unknown command ${['collateral', ...words].join(' ')}; see --help`);
}

async function list(target: CentralPlace, { print }: Ports): Promise<boolean> {
  for (const deposit of await readCentralDatabase(target, listDeposits)) {
    const { subject, source, note, created_at: createdMs } = deposit;
    print(`${JSON.stringify({ subject, source, note, since: naiveUtc(createdMs) })}\n`);
  }
  return true;
}

async function add(
  target: CentralPlace,
  subject: string,
  note: string,
  { clock, print, complain }: Ports,
): Promise<boolean> {
  if (note.trim() === '' || note.length > MAX_NOTE) {
    throw new ConfigError(`collateral add takes a note of 1 to ${MAX_NOTE} characters`);
  }
  const isAdded = await besideCentral(target, (db) => addDeposit({ db, clock }, { subject, note }));
  if (isAdded) print(`${subject}: deposit recorded\n`);
  else complain(`${subject}: no node has this id and no provider has this hotkey\n`);
  return isAdded;
}

async function remove(
  target: CentralPlace,
  subject: string,
  { print, complain }: Ports,
): Promise<boolean> {
  const isRemoved = await besideCentral(target, (db) => removeDeposit(db, subject));
  if (isRemoved) print(`${subject}: deposit removed\n`);
  else
    complain(
      `${subject}: no recorded deposit; to end a deposit of the feed, remove its entry from the feed\n`,
    );
  return isRemoved;
}

function subjectIn(text: string): string {
  const parsed = CollateralSubject.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    `collateral takes a node's id or a provider's hotkey, not ${text || 'nothing'}`,
  );
}

function argumentsIn(args: readonly string[]): { words: string[]; databaseFile: string | null } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { database: { type: 'string' } },
    });
    return { words: positionals, databaseFile: values.database ?? null };
  } catch (error) {
    const [first] = messageOf(error).split('. ');
    throw new ConfigError(`${first}; see --help`);
  }
}
