/** `npm run validator -- ledger …`: a look into the money ledger of a central API, beside it while it runs. */
import { ConfigError } from '#shared/config.ts';
import { type NamedDatabase, namedDatabase } from '../database-place.ts';
import { readCentralDatabase } from '../db/database.ts';
import { auditLedger } from './audit.service.ts';
import { EXPORT_FORMATS, exportLedger } from './ledger-export.ts';

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
  throw new ConfigError(`unknown command ledger ${words.join(' ')}; see --help`);
}

async function verify(target: string, { print, complain }: Output): Promise<boolean> {
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
