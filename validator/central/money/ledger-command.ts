/**
 * `npm run validator -- ledger verify|export|pay-in`: audits and exports the money ledger and records payments, in the
 * database of a central API, also while the central API runs.
 */

import { usdToMicro } from '#shared/api/money.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { type CentralPlace, type NamedDatabase, namedDatabase } from '../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../platform/database/database.ts';
import { moneyTransaction } from '../platform/database/transactions.ts';
import { auditLedger } from './ledger/audit.service.ts';
import { EXPORT_FORMATS, exportLedger } from './ledger/ledger-export.ts';
import { type PaidCreditDeps, type PayIn, payIn } from './top-ups/paid-credit.ts';

export type LedgerCommand = NamedDatabase & {
  /** Words after `ledger`. */
  words: readonly string[];
  format: string | null;
};

/** `print` receives the result, `complain` receives findings and errors. */
type Output = { print(text: string): void; complain(text: string): void };

/** Returns true on success. Rejects with ConfigError for an unknown command and for a missing database. */
export async function runMoneyLedgerCommand(
  command: LedgerCommand,
  deps: PaidCreditDeps,
  output: Output,
): Promise<boolean> {
  const { words, format } = command;
  const target = namedDatabase(command);
  const [name, ...rest] = words;
  if (name === 'verify' && rest.length === 0 && format === null) return verify(target, output);
  const exportFormat = EXPORT_FORMATS.find((known) => known === (format ?? 'jsonl'));
  if (name === 'export' && rest.length === 0 && exportFormat !== undefined) {
    const print = (line: string) => output.print(`${line}\n`);
    await readCentralDatabase(target, (db) => exportLedger(db, exportFormat, print));
    return true;
  }
  if (name === 'pay-in' && format === null) {
    return recordPayment(target, deps, paymentIn(rest), output);
  }
  throw new ConfigError(`unknown command ${['ledger', ...words].join(' ')}; see --help`);
}

const REFERENCE = /^[A-Za-z0-9_.:-]{1,64}$/;
/** Above 0 and below a million dollars, in whole micro-dollars. */
const DOLLARS = /^(?!0+(?:\.0+)?$)\d{1,6}(?:\.\d{1,6})?$/;

function paymentIn(words: readonly string[]): PayIn {
  const [email = '', usd = '', reference = '', ...more] = words;
  if (!DOLLARS.test(usd) || !REFERENCE.test(reference) || more.length > 0) {
    throw new ConfigError(
      'ledger pay-in takes EMAIL, USD (above 0, below 1000000, at most six decimals) and REFERENCE (letters, digits and _.:-, 64 at most)',
    );
  }
  return { email, amountUusd: usdToMicro(Number(usd)), reference };
}

async function recordPayment(
  target: CentralPlace,
  deps: PaidCreditDeps,
  payment: PayIn,
  output: Output,
): Promise<boolean> {
  const result = await besideCentral(target, (db) =>
    moneyTransaction({ db, ...deps }, (tx) => payIn(tx, deps, payment)),
  );
  const isCredited = result === 'credited' || result === 'credited before';
  const write = isCredited ? output.print : output.complain;
  write(`${payment.reference}: ${result}\n`);
  return isCredited;
}

async function verify(target: CentralPlace, { print, complain }: Output): Promise<boolean> {
  const result = await readCentralDatabase(target, auditLedger);
  const { transfers, accounts, openHolds, hash, findings, more } = result;
  for (const { rule, where, what } of findings) complain(`${rule} ${where}: ${what}\n`);
  if (more > 0) complain(`and ${more} more\n`);
  const count = findings.length + more;
  print(
    `${transfers} transfers, ${accounts} accounts, ${openHolds} open holds; balance hash ${hash}\n` +
      `${count === 0 ? 'every rule holds' : `${count} findings`}\n`,
  );
  return count === 0;
}
