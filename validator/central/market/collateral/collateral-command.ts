/** `npm run central -- collateral list|add|remove`: manages deposits in the database, also while a central API runs. */
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { type CentralPlace, namedDatabase } from '../../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../../platform/database/database.ts';
import { CollateralSubject } from './collateral.schemas.ts';
import { addDeposit, listDeposits, removeDeposit } from './collateral.service.ts';

const MAX_NOTE = 200;
const OPTIONS = { database: { type: 'string' } } as const;

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
  const { values, words, problems } = readArguments(command.args, OPTIONS);
  requireNone(problems);
  const { database: databaseFile = null } = values;
  const target = namedDatabase({ databaseFile, usualDatabase: command.usualDatabase });
  const [name, ...rest] = words;
  if (name === 'list' && rest.length === 0) return list(target, ports);
  const [subject = '', ...note] = rest;
  if (name === 'add') {
    requireNone([...problemsOfSubject(subject), ...problemsOfNote(note.join(' '))]);
    return add(target, subject, note.join(' '), ports);
  }
  if (name === 'remove' && note.length === 0) {
    requireNone(problemsOfSubject(subject));
    return remove(target, subject, ports);
  }
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

function problemsOfSubject(text: string): string[] {
  if (CollateralSubject.safeParse(text).success) return [];
  return [`collateral takes a node's id or a provider's hotkey, not ${text || 'nothing'}`];
}

function problemsOfNote(note: string): string[] {
  if (note.trim() !== '' && note.length <= MAX_NOTE) return [];
  return [`collateral add takes a note of 1 to ${MAX_NOTE} characters`];
}
