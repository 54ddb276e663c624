/** `npm run validator -- payout …`: has what was earned paid out, beside a running central API, which asks the processor. */

import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type NamedDatabase, namedDatabase } from '../../platform/central-home.ts';
import { besideCentral, readCentralDatabase } from '../../platform/database/database.ts';
import type { Database, PayoutRow } from '../../platform/database/tables.ts';
import { partyOf } from './payout.party.ts';
import { createPayouts } from './payout.service.ts';
import { listCreditors, listPayouts } from './payout.store.ts';

/** Rows that are shown. */
const SHOWN = 1_000;
/** Parties that are read at a time. */
const PAGE = 500;

export type PayoutAsk = NamedDatabase & {
  /** After `payout`. */
  words: readonly string[];
  /** Whether the central API has somebody who pays. */
  isPaid: boolean;
};
type Ports = { clock: Clock; random: Random; print(text: string): void };

/** Rejects with ConfigError for words that are no command, without a database, and where nobody would pay. */
export async function runPayoutCommand(ask: PayoutAsk, ports: Ports): Promise<void> {
  const target = namedDatabase(ask);
  const print = (value: object) => ports.print(`${JSON.stringify(value)}\n`);
  const words = ask.words.join(' ');
  if (words === 'list') {
    const rows = await readCentralDatabase(target, (db) => listPayouts(db, SHOWN));
    for (const row of rows) print(shown(row));
    return;
  }
  if (words !== 'run') throw new ConfigError(`unknown command payout ${words}; see --help`);
  if (!ask.isPaid) {
    throw new ConfigError(
      'CENTRAL_PAYOUTS is none: nobody would pay what is set aside. Set it as it is for the central API.',
    );
  }
  const { clock, random } = ports;
  await besideCentral(target, (db) => requestAll({ db, clock, random }, print));
}

/** Each party in a transaction of its own: what was requested before a failure stays. */
async function requestAll(
  deps: { db: Database; clock: Clock; random: Random },
  print: (value: object) => void,
): Promise<void> {
  const payouts = createPayouts(deps);
  for (let after = ''; ; ) {
    const creditors = await listCreditors(deps.db, after, PAGE);
    for (const account of creditors) {
      const party = partyOf(account);
      if (party === null) continue;
      const done = await payouts.request(party);
      if ('payout' in done) print(shown(done.payout));
      else
        print({ party: account, refused: done.refused, payable_usd: microToUsd(done.payableUusd) });
    }
    const last = creditors.at(-1);
    if (last === undefined || creditors.length < PAGE) return;
    after = last;
  }
}

function shown(row: PayoutRow) {
  const { id, party, state, method, address, network, attempts } = row;
  return {
    ...{ id, party, state, amount_usd: microToUsd(row.amount_uusd), method, address, network },
    ...{ processor: row.processor, external_id: row.external_id, attempts },
    ...{ last_error: row.last_error, requested_at: naiveUtc(row.created_at) },
  };
}
