import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { testCause } from '../../../../test/fakes/scenes/wallet.ts';
import type { LedgerAccount } from './double-entry.ts';
import { settleHold } from './hold.service.ts';
import { postGroup } from './ledger.service.ts';
import { grantedAccount, paidAccount } from './wallet.service.ts';

const CREDIT_USD = 10;
const HELD_USD = 0.55;

let scene: PodScene;
let settled: string;
/** Creates a renter with sign-up credit, a settled pod, a deleted pod, and received money. */
beforeAll(async () => {
  scene = await createPodScene();
  const { db } = scene.market.ports;
  settled = await scene.running();
  await scene.remove(await scene.rentOne());
  await scene.market.clock.advance(3_600_000);
  const { hold_id: hold } = await db
    .selectFrom('pods')
    .select('hold_id')
    .where('id', '=', settled)
    .executeTakeFirstOrThrow();
  const atMs = scene.market.clock.now();
  await db
    .transaction()
    .execute((tx) => settleHold(tx, String(hold), 200_000, testCause({ id: settled, atMs })));
  await post('user:somebody-else', paidAccount(scene.account.id), 3_000_000, atMs, 5_000_000);
  await post(grantedAccount(scene.account.id), 'clearing:usage', 1, atMs);
});
afterAll(() => scene.market.close());

async function post(
  debit: LedgerAccount,
  credit: LedgerAccount,
  amountUusd: number,
  atMs: number,
  first = 0,
): Promise<void> {
  await scene.market.ports.db.transaction().execute(async (tx) => {
    if (first > 0) {
      const funds = { debit: 'external:topup', credit: debit, amountUusd: first } as const;
      await postGroup(tx, [funds], testCause({ atMs }));
    }
    await postGroup(tx, [{ debit, credit, amountUusd }], testCause({ atMs }));
  });
}

const read = (query = '') => scene.call('GET', `/users/me/ledger${query}`);

describe('the journal of an account', () => {
  it('lists each line with its cause and the balance after the line', async () => {
    const { status, body } = await read();
    expect(status).toBe(200);
    expect(body.next_after).toBeNull();
    const told = body.lines.map(
      (line: Record<string, unknown>) =>
        `${line['kind']} ${line['credit']} ${line['amount_usd']} ${line['held_usd']} ` +
        `${line['balance_usd']} ${line['counterpart']} ${line['cause_type']}`,
    );
    expect(told).toEqual([
      `posted granted ${CREDIT_USD} 0 10 platform:credits_granted signup-credit`,
      `held granted 0 ${HELD_USD} 10 clearing:usage pod-hold`,
      `held granted 0 ${HELD_USD} 10 clearing:usage pod-hold`,
      `hold_released granted 0 -${HELD_USD} 10 clearing:usage pod-hold-void`,
      `hold_spent granted -0.2 -${HELD_USD} 9.8 clearing:usage test`,
      'posted paid 3 0 12.8 user test',
      'posted granted -0.000001 0 12.799999 clearing:usage test',
    ]);
    expect(body.lines[4]).toMatchObject({ cause_id: settled, at: '2027-01-15T09:00:01.000000' });
    const me = (await scene.call('GET', '/users/me')).body;
    expect(me).toMatchObject({ balance: 12.799999, held: 0, available: 12.799999 });
  });

  it('is paged from the newest line on, with the same balances', async () => {
    const whole = (await read()).body.lines;
    const lines = [];
    let before = '';
    for (let page = 0; page < whole.length; page += 1) {
      const { body } = await read(`?order=desc&limit=2${before}`);
      expect(body.next_after).toBeNull();
      lines.push(...body.lines);
      if (body.next_before === null) break;
      before = `&before=${body.next_before}`;
    }
    expect(lines).toEqual(whole.toReversed());
    const since = encodeURIComponent(`${whole.at(-1).at}Z`);
    const late = (await read(`?order=desc&since=${since}`)).body.lines;
    expect(late).toEqual(
      whole.filter(({ at }: { at: string }) => at >= whole.at(-1).at).toReversed(),
    );
  });

  it('is paged without gaps or overlaps', async () => {
    const whole = (await read()).body.lines;
    const pages = [];
    for (let after: number | null = 0; after !== null; ) {
      const { body } = await read(`?limit=3&after=${after}`);
      pages.push(body.lines);
      after = body.next_after;
    }
    expect(pages.map((lines) => lines.length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual(whole);
    expect((await read('?since=2027-01-15T08:30:00Z')).body.lines).toEqual(whole.slice(4));
    expect((await read('?since=2030-01-01T00:00:00Z')).body.lines).toEqual([]);
  });

  it('is available as CSV', async () => {
    const { server } = scene.market;
    const url = '/api/users/me/ledger?format=csv&limit=2';
    const { headers, body } = await server.inject({ url, headers: scene.account.key });
    expect(headers['content-type']).toBe('text/csv; charset=utf-8');
    const [head, first, , end] = body.split('\r\n');
    expect(head).toBe(
      'seq,at,group_id,kind,credit,counterpart,amount_usd,held_usd,balance_usd,cause_type,cause_id',
    );
    expect(first).toContain(',posted,granted,platform:credits_granted,10,0,10,signup-credit,');
    expect(end).toBe('');
  });

  it('can be read only by its account, and rejects unknown parameters', async () => {
    const other = await scene.market.renter();
    const { body } = await scene.market.call('GET', '/users/me/ledger', { headers: other.key });
    expect(body.lines).toHaveLength(1);
    expect((await scene.market.call('GET', '/users/me/ledger')).status).toBe(401);
    for (const query of ['?limit=1001', '?limit=0', '?after=-1', '?format=xml', '?since=soon']) {
      expect((await read(query)).status).toBe(422);
    }
  });

  it('is refused if its lines do not sum to the stored balance', async () => {
    const { db } = scene.market.ports;
    const store = (change: 1 | -1) =>
      db
        .updateTable('ledger_accounts')
        .set((eb) => ({ credits_posted: eb('credits_posted', '+', change) }))
        .where('id', '=', grantedAccount(scene.account.id))
        .execute();
    await store(1);
    const { status, body } = await read();
    expect([status, body.error.code]).toEqual([403, 'account_balance_invalid']);
    await store(-1);
    expect((await read()).status).toBe(200);
  });
});
