/**
 * `npm run central -- provider ban|unban HOTKEY --reason TEXT` and `provider audit`. The commands also work while a
 * central API uses the database.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { listAudit } from '../platform/audit/audit.service.ts';
import { auditedArguments } from '../platform/audit/audited-arguments.ts';
import { type NamedDatabase, namedDatabase } from '../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../platform/database/database.ts';
import { moneyTransaction } from '../platform/database/transactions.ts';
import { createProviderBans } from './provider-ban.service.ts';

/** Maximum number of listed entries, newest first. */
const MAX_LISTED = 1_000;

export type ProviderCommand = Pick<NamedDatabase, 'usualDatabase'> & {
  /** Arguments after `provider`. */
  args: readonly string[];
  /** Name of the person who runs the command, for the audit entry. */
  operator: string;
};
type Ports = { clock: Clock; random: Random; print(text: string): void };

const COMMANDS = {
  name: 'provider',
  changes: ['ban', 'unban'],
  subject: 'HOTKEY',
  list: 'audit',
} as const;

/**
 * Prints one line of JSON per result. Rejects with ConfigError for an unknown command, an unknown hotkey or a missing
 * reason.
 */
export async function runProviderCommand(command: ProviderCommand, ports: Ports): Promise<void> {
  const { change, databaseFile } = auditedArguments(command.args, COMMANDS);
  const target = namedDatabase({ databaseFile, usualDatabase: command.usualDatabase });
  const print = (value: object) => ports.print(`${JSON.stringify(value)}\n`);
  if (change === null) {
    const entries = await readCentralDatabase(target, (db) => listAudit(db, { limit: MAX_LISTED }));
    for (const { at_ms, ...entry } of entries) print({ ...entry, at: naiveUtc(at_ms) });
    return;
  }
  const { name, subject: hotkey, reason } = change;
  const { operator } = command;
  const bans = createProviderBans(ports);
  const hasChanged = await besideCentral(target, (db) =>
    moneyTransaction({ db, ...ports }, (tx) => bans[name](tx, { hotkey, reason, operator })),
  ).catch((error: unknown) => {
    throw error instanceof ApiError ? new ConfigError(error.message, { cause: error }) : error;
  });
  print({ hotkey, banned: name === 'ban', changed: hasChanged });
}
