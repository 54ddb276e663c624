/** The command `move` of the central API and of the validator, which moves their SQLite file to PostgreSQL. */
import { readFileSync, statSync } from 'node:fs';
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { requirePrivate } from '#shared/runtime/files.ts';
import type { MoveRecord } from '../move-record.ts';
import { databaseProblems, isFileAddress, isPostgresAddress } from '../open-database.ts';
import { type DatabaseLocation, KINDS } from '../ownership.ts';
import {
  type MovableKind,
  type MovePorts,
  type MoveResult,
  moveDatabase,
  undoMove,
} from './move-database.ts';
import { refusal } from './move-error.ts';

export type MoveCommand<Tables> = {
  /** Arguments after `move`. */
  args: readonly string[];
  /** The database that the environment configures. */
  usual: DatabaseLocation;
  kind: MovableKind<Tables>;
};

type Ports = MovePorts & { print(text: string): void };

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const MAX_ADDRESS_BYTES = 65_536;

/** Rejects with ConfigError for wrong arguments, and as `moveDatabase` does. */
export async function runMoveCommand<Tables>(
  { args, usual, kind }: MoveCommand<Tables>,
  ports: Ports,
): Promise<void> {
  const { option, move: command } = KINDS[usual.kind];
  const { values, problems } = readArguments(
    args,
    { [option]: TEXT, to: TEXT, 'to-file': TEXT, undo: FLAG, help: FLAG },
    0,
  );
  requireNone(problems);
  if (values['help'] !== undefined) return ports.print(usageOf(usual));
  const { [option]: file, to, 'to-file': toFile, undo } = values;
  if ([to, toFile, undo].filter((value) => value !== undefined).length !== 1)
    throw new ConfigError(`${command} takes one of --to ADDRESS, --to-file FILE and --undo`);
  const source =
    typeof file === 'string' ? { ...usual, address: file, variable: `--${option}` } : usual;
  requireFile(source, option);
  if (undo !== undefined) {
    const record = await undoMove(source, ports);
    return ports.print(undoneText(source, record));
  }
  const target =
    typeof to === 'string'
      ? addressIn(to)
      : addressInFile(typeof toFile === 'string' ? toFile : '');
  ports.print(
    movedText(await moveDatabase({ kind, source, target }, ports), source, usual.variable),
  );
}

function usageOf({ kind, variable }: DatabaseLocation): string {
  const { name, option, move: command } = KINDS[kind];
  return `Moves the ${name} from its SQLite file to an empty PostgreSQL database, or continues an interrupted move.
Stop the process first; afterwards set ${variable} to the address of the PostgreSQL database.

  ${command} --to postgres://user@host:port/database
  ${command} --to-file FILE    read the address from a file: for an address with a password
  ${command} --undo            make the moved file usable again, without the changes since the move

--${option} FILE names another SQLite file than ${variable}.
`;
}

function requireFile({ address, variable }: DatabaseLocation, option: string): void {
  if (isFileAddress(variable, address)) return;
  throw new ConfigError(
    `${variable} does not name a SQLite file: name the file with --${option} FILE`,
  );
}

type Target = Pick<DatabaseLocation, 'address' | 'variable'>;

/** Throws ConfigError for an address with a password, which other users of the host could read. */
function addressIn(address: string): Target {
  const target = requireServer({ address, variable: '--to' });
  const { password = '', searchParams } = URL.parse(address) ?? {};
  if (password === '' && searchParams?.has('password') !== true) return target;
  throw refusal(
    'password_in_arguments',
    'other users of this host could read the password in --to: write the address to a file that only you may read, and name the file with --to-file',
  );
}

function addressInFile(path: string): Target {
  const variable = '--to-file';
  try {
    requirePrivate(path);
    const text = statSync(path).size > MAX_ADDRESS_BYTES ? '' : readFileSync(path, 'utf8').trim();
    return requireServer({ address: text, variable });
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`${variable}: ${messageOf(cause)}`, { cause });
  }
}

function requireServer(target: Target): Target {
  const { address, variable } = target;
  const [problem] = databaseProblems(variable, address);
  if (problem !== undefined) throw new ConfigError(problem.message);
  if (isPostgresAddress(address)) return target;
  throw new ConfigError(
    `${variable}: not the address of a PostgreSQL server: write postgres://user@host:port/database`,
  );
}

function movedText(
  { place, copied, skipped }: MoveResult,
  { address }: DatabaseLocation,
  variable: string,
): string {
  const rows = copied?.tables.reduce((sum, table) => sum + table.rows, 0);
  return [
    ...(skipped.length === 0
      ? []
      : [`not copied, tables of other programs: ${skipped.join(', ')}`]),
    copied === null
      ? `${address} was already copied to ${place}`
      : `${rows} rows of ${copied.tables.length} tables are equal in ${address} and ${place}`,
    ...(copied === null || copied.audit === null ? [] : [`both sides: ${copied.audit}`]),
    `no process starts on ${address} any more; set ${variable} to the address of ${place}, and keep the keys in the home`,
    '',
  ].join('\n');
}

function undoneText({ address }: DatabaseLocation, { state, other, atMs }: MoveRecord): string {
  if (state === 'copying')
    return `${address} can be used again; drop the incomplete copy: ${other}\n`;
  return `${address} can be used again; it lacks all changes since ${naiveUtc(atMs).slice(0, 19)}Z, which are in ${other}\n`;
}
