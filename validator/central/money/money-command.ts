/** `npm run validator -- ledger …`: a look into the money ledger of a central API, and payments for it, beside it while it runs. */

import { usdToMicro } from '#shared/api/money.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type CentralPlace, type NamedDatabase, namedDatabase } from '../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../platform/database/database.ts';
import { moneyTransaction } from '../platform/database/transactions.ts';
import { auditLedger } from './ledger/audit.service.ts';
import { EXPORT_FORMATS, exportLedger } from './ledger/ledger-export.ts';
import { type PayIn, payIn } from './top-ups/paid-credit.ts';

export type MoneyAsk = NamedDatabase & {
  /** After `ledger`. */
  words: readonly string[];
  format: string | null;
};

/** Where the answer goes: what was asked for, and what is wrong with it. */
type Output = { print(text: string): void; complain(text: string): void };

/** Whether all is well. Rejects with ConfigError for words that are no command, and without a database. */
export async function runMoneyCommand(ask: MoneyAsk, output: Output): Promise<boolean> {
  const { words, format } = ask;
  const target = namedDatabase(ask);
  const [name, ...rest] = words;
  if (name === 'verify' && rest.length === 0 && format === null) return verify(target, output);
  const chosen = EXPORT_FORMATS.find((known) => known === (format ?? 'jsonl'));
  if (name === 'export' && rest.length === 0 && chosen !== undefined) {
    const print = (line: string) => output.print(`${line}\n`);
    await readCentralDatabase(target, (db) => exportLedger(db, chosen, print));
    return true;
  }
  if (name === 'pay-in' && format === null) return takePayIn(target, payInOf(rest), output);
  throw new ConfigError(`unknown command ${['ledger', ...words].join(' ')}; see --help`);
}

const REFERENCE = /^[A-Za-z0-9_.:-]{1,64}$/;
/** Up to a million, and whole micro-dollars. */
const DOLLARS = /^(?!0+(?:\.0+)?$)\d{1,6}(?:\.\d{1,6})?$/;

function payInOf(words: readonly string[]): PayIn {
  const [email = '', usd = '', reference = '', ...more] = words;
  if (!DOLLARS.test(usd) || !REFERENCE.test(reference) || more.length > 0) {
    throw new ConfigError(
      'ledger pay-in takes EMAIL, USD (above 0, below 1000000, at most six decimals) and REFERENCE (letters, digits and _.:-, 64 at most)',
    );
  }
  return { email, amountUusd: usdToMicro(Number(usd)), reference };
}

async function takePayIn(target: CentralPlace, paid: PayIn, output: Output): Promise<boolean> {
  const deps = { clock: systemClock, random: systemRandom };
  const became = await besideCentral(target, (db) =>
    moneyTransaction({ db, ...deps }, (tx) => payIn(tx, deps, paid)),
  );
  const isWell = became === 'credited' || became === 'credited before';
  const say = isWell ? output.print : output.complain;
  say(`${paid.reference}: ${became}\n`);
  return isWell;
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
