import { CompiledQuery, type KyselyPlugin } from 'kysely';
import { expect, it } from 'vitest';
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
  const asked: CompiledQuery[] = [];
  const listen: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      asked.push(db.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  try {
    expect(await list(db.withPlugin(listen), 1, 10)).toEqual([]);
    const [query = CompiledQuery.raw('')] = asked;
    const plan = CompiledQuery.raw(`explain query plan ${query.sql}`, [...query.parameters]);
    const { rows } = await db.executeQuery<{ detail: string }>(plan);
    expect(rows.map(({ detail }) => detail.replace(/^.* USING/, 'USING'))).toEqual([
      `USING INDEX ${index} (due_at<?)`,
    ]);
  } finally {
    await db.destroy();
  }
});
