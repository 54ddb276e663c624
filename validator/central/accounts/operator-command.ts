/**
 * `npm run central -- operator grant|revoke EMAIL --reason TEXT` and `operator list`, which work while a central API
 * runs.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { auditedArguments } from '../platform/audit/audited-arguments.ts';
import { type NamedDatabase, namedDatabase } from '../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../platform/database/database.ts';
import { moneyTransaction } from '../platform/database/transactions.ts';
import { changeOperatorRole, listOperators } from './account/operator-role.service.ts';

export type OperatorCommand = Pick<NamedDatabase, 'usualDatabase'> & {
  /** Arguments after `operator`. */
  args: readonly string[];
  /** Name of the person who runs the command, for the audit entry. */
  operator: string;
};
type Ports = { clock: Clock; random: Random; print(text: string): void };

const COMMANDS = {
  name: 'operator',
  changes: ['grant', 'revoke'],
  subject: 'EMAIL',
  list: 'list',
} as const;

/** Prints one line of JSON per result. Rejects with ConfigError for an unknown command, address or missing reason. */
export async function runOperatorCommand(command: OperatorCommand, ports: Ports): Promise<void> {
  const { change, databaseFile } = auditedArguments(command.args, COMMANDS);
  const target = namedDatabase({ databaseFile, usualDatabase: command.usualDatabase });
  const print = (value: object) => ports.print(`${JSON.stringify(value)}\n`);
  if (change === null) {
    for (const { operator_since, ...account } of await readCentralDatabase(target, listOperators)) {
      print({ ...account, since: naiveUtc(operator_since ?? 0) });
    }
    return;
  }
  const { subject: email, reason } = change;
  const isOperator = change.name === 'grant';
  const role = { email, isOperator, reason, operator: command.operator };
  const hasChanged = await besideCentral(target, (db) =>
    moneyTransaction({ db, ...ports }, (tx) => changeOperatorRole(tx, ports, role)),
  ).catch((error: unknown) => {
    throw error instanceof ApiError ? new ConfigError(error.message, { cause: error }) : error;
  });
  print({ email, operator: isOperator, changed: hasChanged });
}
