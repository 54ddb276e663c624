/**
 * `npm run validator -- ledger verify|export|close|archive|pay-in`: audits and exports the money ledger, closes and
 * archives its months, and records payments, in the database of a central API, also while the central API runs.
 */

import { resolve } from 'node:path';
import { usdToMicro } from '#shared/api/money.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { type CentralPlace, type NamedDatabase, namedDatabase } from '../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../platform/database/database.ts';
import { moneyTransaction } from '../platform/database/transactions.ts';
import { archiveMonth } from './ledger/archive.service.ts';
import { auditLedger } from './ledger/audit.service.ts';
import { EXPORT_FORMATS, exportLedger } from './ledger/ledger-export.ts';
import { closeMonths, LEAST_CLOSE_MS } from './ledger/month-close.service.ts';
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
  const [folder = null] = rest;
  if (name === 'verify' && rest.length <= 1 && format === null) {
    return verify(target, folder, output);
  }
  const exportFormat = EXPORT_FORMATS.find((known) => known === (format ?? 'jsonl'));
  if (name === 'export' && rest.length <= 1 && exportFormat !== undefined) {
    const print = (line: string) => output.print(`${line}\n`);
    await readCentralDatabase(target, (db) => exportLedger(db, exportFormat, print, folder));
    return true;
  }
  if (name === 'close' && rest.length === 0 && format === null) return close(target, deps, output);
  if (name === 'archive' && format === null) return archive(target, deps, rest, output);
  if (name === 'pay-in' && format === null) {
    return recordPayment(target, deps, paymentIn(rest), output);
  }
  throw new ConfigError(`unknown command ${['ledger', ...words].join(' ')}; see --help`);
}

async function close(
  target: CentralPlace,
  { clock }: PaidCreditDeps,
  { print }: Output,
): Promise<boolean> {
  const months = await besideCentral(target, (db) => closeMonths({ db, clock }, LEAST_CLOSE_MS));
  for (const { month, transfers, chain_hash: hash } of months) {
    print(`${month}: ${transfers} transfers, hash ${hash}\n`);
  }
  if (months.length === 0) print('no month has ended since the last closed month\n');
  return true;
}

const MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/;

async function archive(
  target: CentralPlace,
  deps: PaidCreditDeps,
  words: readonly string[],
  { print }: Output,
): Promise<boolean> {
  const [month = '', folder = '', ...more] = words;
  if (!MONTH.test(month) || folder === '' || more.length > 0) {
    throw new ConfigError('ledger archive takes MONTH (such as 2026-10) and FOLDER');
  }
  const { file } = await besideCentral(target, (db) =>
    archiveMonth({ ...deps, db }, month, resolve(folder)),
  );
  print(`${month}: archived in ${file}\n`);
  return true;
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

async function verify(
  target: CentralPlace,
  folder: string | null,
  { print, complain }: Output,
): Promise<boolean> {
  const result = await readCentralDatabase(target, (db) => auditLedger(db, folder));
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
