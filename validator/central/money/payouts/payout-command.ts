/** `npm run validator -- payout run|list`: requests and lists payouts in the database of a running central API. */
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { type NamedDatabase, namedDatabase } from '../../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../../platform/database/database.ts';
import type { PayoutRow } from '../../platform/database/tables.ts';
import { createPayouts, type PayoutsDeps, partyOf } from './payout.service.ts';
import { listCreditors, listPayouts } from './payout.store.ts';

/** Payouts listed, newest first. */
const MAX_LISTED = 1_000;
/** Parties read at a time. */
const PAGE = 500;

export type PayoutCommand = NamedDatabase & {
  /** Words after `payout`. */
  words: readonly string[];
  /** True if the central API has a payout processor (CENTRAL_PAYOUTS). */
  isPaid: boolean;
};
type Ports = Omit<PayoutsDeps, 'db'> & { print(text: string): void };

/** Prints one line of JSON per payout. Rejects with ConfigError for an unknown command and for missing configuration. */
export async function runPayoutCommand(command: PayoutCommand, ports: Ports): Promise<void> {
  const target = namedDatabase(command);
  const print = (value: object) => ports.print(`${JSON.stringify(value)}\n`);
  const words = command.words.join(' ');
  if (words === 'list') {
    const rows = await readCentralDatabase(target, (db) => listPayouts(db, MAX_LISTED));
    for (const row of rows) print(shown(row));
    return;
  }
  if (words !== 'run') throw new ConfigError(`unknown command payout ${words}; see --help`);
  if (!command.isPaid) {
    throw new ConfigError(
      'CENTRAL_PAYOUTS is none, so requested payouts would never be paid. Set it to the same value as for the central API.',
    );
  }
  await besideCentral(target, (db) => requestAll({ ...ports, db }, print));
}

/** Uses one transaction per party, so payouts requested before a failure stay. */
async function requestAll(deps: PayoutsDeps, print: (value: object) => void): Promise<void> {
  const payouts = createPayouts(deps);
  for (let after = ''; ; ) {
    const creditors = await listCreditors(deps.db, after, PAGE);
    for (const account of creditors) {
      const party = partyOf(account);
      if (party === null) continue;
      const result = await payouts.request(party);
      if ('payout' in result) print(shown(result.payout));
      else {
        const { refused, payableUusd } = result;
        print({ party: account, refused, payable_usd: microToUsd(payableUusd) });
      }
    }
    const last = creditors.at(-1);
    if (last === undefined || creditors.length < PAGE) return;
    after = last;
  }
}

function shown(row: PayoutRow) {
  return {
    id: row.id,
    party: row.party,
    state: row.state,
    amount_usd: microToUsd(row.amount_uusd),
    method: row.method,
    address: row.address,
    network: row.network,
    processor: row.processor,
    external_id: row.external_id,
    attempts: row.attempts,
    last_error: row.last_error,
    requested_at: naiveUtc(row.created_at),
  };
}
