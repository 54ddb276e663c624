import { expect, it } from 'vitest';
import { planOf } from '../../../../test/fakes/scenes/central-database.ts';
import { waitingMails } from '../../delivery/mail/mail.store.ts';
import { openPayouts } from '../../money/payouts/payout.store.ts';
import { topUpsInFlight } from '../../money/top-ups/top-up.store.ts';
import { openCentralDatabase } from './database.ts';
import type { DueRow, DueRows } from './due-rows.ts';

const lists: [index: string, list: DueRows<DueRow>['list']][] = [
  ['mails_due', waitingMails.list],
  ['payouts_due', openPayouts.list],
  ['topups_due', topUpsInFlight.list],
];

it.each(lists)('the query for due rows uses the index %s', async (index, list) => {
  const db = await openCentralDatabase(':memory:');
  try {
    const plan = await planOf(db, (watched) => list(watched, 1, 10));
    expect(plan.map((line) => line.replace(/^.* USING/, 'USING'))).toEqual([
      `USING INDEX ${index} (due_at<?)`,
    ]);
  } finally {
    await db.destroy();
  }
});
