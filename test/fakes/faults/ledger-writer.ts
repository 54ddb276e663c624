/**
 * A process that posts to the ledger in the database LEDGER_DATABASE until it is killed. It prints what it has
 * committed.
 */
import { systemRandom } from '#shared/runtime/random.ts';
import { placeHold, settleHold } from '../../../validator/central/money/ledger/hold.service.ts';
import { postGroup } from '../../../validator/central/money/ledger/ledger.service.ts';
import { paidAccount } from '../../../validator/central/money/ledger/wallet.service.ts';
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import { testCause } from '../scenes/wallet.ts';

const db = await openCentralDatabase(process.env['LEDGER_DATABASE'] ?? '');
process.stdout.write('ready\n');
for (;;) {
  const amountUusd = 2 + systemRandom.int(1_000);
  const id = await db.transaction().execute(async (tx) => {
    const leg = { debit: 'external:topup', credit: paidAccount('renter'), amountUusd } as const;
    const group = await postGroup(tx, [leg], testCause());
    const hold = await placeHold(tx, 'renter', amountUusd, testCause());
    await settleHold(tx, hold, 1, testCause());
    const earned = { debit: 'clearing:usage', credit: 'platform:fee', amountUusd: 1 } as const;
    await postGroup(tx, [earned], testCause());
    return group;
  });
  process.stdout.write(`${id}\n`);
}
