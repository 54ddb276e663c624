import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, onPostgres } from '../../../../test/fakes/scenes/central-database.ts';
import { replayJournal } from '../../../../test/fakes/scenes/journal-replay.ts';
import { testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { createLedgerWorld } from '../../../../test/soak/ledger-world.ts';
import type { Database } from '../../platform/database/tables.ts';
import { auditLedger } from './audit.service.ts';
import { allAccounts } from './audit.store.ts';
import { balanceHash, createAudit, type Finding, type StoredTransfer } from './audit.ts';
import type { LedgerAccount } from './double-entry.ts';
import { postGroup } from './ledger.service.ts';
import { paidAccount } from './wallet.service.ts';

let db: Database;
beforeEach(async () => {
  db = await createTestDatabase();
});
afterEach(() => db.destroy());

const STEPS = onPostgres() ? 40 : 150;
const AUDITED_EVERY = 15;

it('keeps every invariant over random postings, rejections and crashes, and replays to the same balances', async () => {
  const world = createLedgerWorld(db, createSeededRandom(11));
  for (let step = 1; step <= STEPS; step += 1) {
    await world.step();
    if (step % AUDITED_EVERY === 0) await world.audit();
  }
  const again = await createTestDatabase();
  await replayJournal(db, again);
  const { hash, findings, transfers } = await again.transaction().execute(auditLedger);
  expect(findings).toEqual([]);
  expect(transfers).toBeGreaterThan(STEPS / 2);
  expect(hash).toBe(balanceHash(await allAccounts(db)));
  await again.destroy();
});

it('keeps every invariant over 100 concurrent transfers, none of which overdraws an account', async () => {
  const people = ['a', 'b', 'c', 'd'];
  const each = 100;
  const post = (debit: LedgerAccount, credit: LedgerAccount, amountUusd: number) =>
    db
      .transaction()
      .execute((tx) => postGroup(tx, [{ debit, credit, amountUusd }], testCause()))
      .then(
        () => 'done',
        (error) => error.code,
      );
  for (const id of people) await post('external:topup', paidAccount(id), each);
  const random = createSeededRandom(5);
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => {
      const from = random.int(people.length);
      const to = (from + 1 + random.int(people.length - 1)) % people.length;
      return post(paidAccount(`${people[from]}`), paidAccount(`${people[to]}`), 1 + random.int(60));
    }),
  );
  expect(new Set(answers)).toEqual(new Set(['done', 'insufficient_balance']));
  const { findings } = await db.transaction().execute(auditLedger);
  expect(findings).toEqual([]);
  const accounts = (await allAccounts(db)).filter(({ id }) => id.startsWith('user:'));
  const sum = accounts.reduce((all, row) => all + row.credits_posted - row.debits_posted, 0);
  expect(sum).toBe(people.length * each);
});

const direct: StoredTransfer = {
  seq: 1,
  group_id: 1,
  debit_id: 'external:topup',
  credit_id: 'user:a',
  amount_uusd: 10,
  kind: 'direct',
  pending_seq: null,
};
const pending: StoredTransfer = {
  seq: 2,
  group_id: 2,
  debit_id: 'user:a',
  credit_id: 'clearing:usage',
  amount_uusd: 4,
  kind: 'pending',
  pending_seq: null,
};
const voided: StoredTransfer = { ...pending, seq: 3, group_id: 3, kind: 'void', pending_seq: 2 };
const A = { id: 'user:a', debits_posted: 0, credits_posted: 10, debits_pending: 0 };
const TOP_UP = { id: 'external:topup', debits_posted: 10, credits_posted: 0, debits_pending: 0 };

/** Returns the rules that the audit reports as violated, sorted. */
function violatedBy(transfers: readonly StoredTransfer[], account: typeof A): string[] {
  const findings: Finding[] = [];
  const audit = createAudit((finding) => findings.push(finding));
  for (const transfer of transfers) audit.add(transfer);
  audit.finish([account, TOP_UP]);
  return findings.map(({ rule }) => rule).toSorted();
}

it('accepts a voided hold and an open hold', () => {
  expect(violatedBy([direct, pending, voided], A)).toEqual([]);
  expect(violatedBy([direct, pending], { ...A, debits_pending: 4 })).toEqual([]);
});

it.each<[string, StoredTransfer[], typeof A, string[]]>([
  [
    'a stored balance that differs from the journal',
    [direct],
    { ...A, credits_posted: 11 },
    ['I1', 'I15'],
  ],
  ['stored pending money that differs from the journal', [direct, pending], A, ['I15']],
  ['a transfer that counts twice', [direct, direct], A, ['I3', 'I15', 'I15']],
  ['an account below 0', [direct, { ...pending, amount_uusd: 11 }], A, ['I15', 'I2']],
  ['a hold that ends twice', [direct, pending, voided, { ...voided, seq: 4 }], A, ['I4']],
  [
    'a hold that is only partly resolved',
    [direct, pending, { ...pending, seq: 3 }, { ...voided, seq: 4 }],
    { ...A, debits_pending: 4 },
    ['I4'],
  ],
  ['a void of more than was held', [direct, pending, { ...voided, amount_uusd: 5 }], A, ['I4']],
  [
    'a void that debits another account than its hold',
    [direct, pending, { ...voided, debit_id: 'user:b' }],
    A,
    ['I4'],
  ],
  ['a zero amount', [direct, { ...direct, seq: 2, amount_uusd: 0 }], A, ['I1']],
])('finds %s', (_, transfers, account, rules) => {
  expect(violatedBy(transfers, account)).toEqual(rules.toSorted());
});

it('finds money left on a transit account', () => {
  const findings: Finding[] = [];
  const audit = createAudit((finding) => findings.push(finding));
  audit.add({ ...direct, credit_id: 'clearing:usage' });
  audit.finish([{ ...A, id: 'clearing:usage' }, TOP_UP]);
  expect(findings).toEqual([
    { rule: 'I8', where: 'clearing:usage', what: 'has a balance of 10 uUSD' },
  ]);
});
