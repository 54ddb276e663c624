/** Tests that a simulation finds bugs. Each bug is a trigger of the database, which undoes a write of the product. */
import { expect, it } from 'vitest';
import { runSql } from '../../test/fakes/scenes/central-database.ts';
import { simulateDay } from '../../test/fakes/scenes/small-simulation.ts';
import type { Invariant } from './invariants/violations.ts';

const MAX_EVENTS = 10_000;
const HOUR_MS = 3_600_000;

type Bug = { bug: string; trigger: string; found: Invariant };

const BUGS: readonly Bug[] = [
  {
    bug: 'a GPU is leased without a record',
    trigger: `after update of pod_id on gpu_slots when new.pod_id is not null begin
      update gpu_slots set pod_id = null where executor_id = new.executor_id and idx = new.idx; end`,
    found: 'gpu-leased-once',
  },
  {
    bug: 'the GPU of an ended pod stays leased',
    trigger: `after update of pod_id on gpu_slots when new.pod_id is null and old.pod_id is not null begin
      update gpu_slots set pod_id = old.pod_id where executor_id = new.executor_id and idx = new.idx; end`,
    found: 'slot-of-pod',
  },
  {
    bug: 'a hold is not released',
    trigger: `after update of debits_pending on ledger_accounts when new.debits_pending < old.debits_pending begin
      update ledger_accounts set debits_pending = old.debits_pending where id = new.id; end`,
    found: 'ledger',
  },
  {
    bug: 'a hold is not recorded',
    trigger: `after update of debits_pending on ledger_accounts when new.debits_pending > old.debits_pending begin
      update ledger_accounts set debits_pending = old.debits_pending where id = new.id; end`,
    found: 'ledger',
  },
  {
    bug: 'each debit is rounded up by a micro-dollar',
    trigger: `after update of debits_posted on ledger_accounts when new.debits_posted > old.debits_posted begin
      update ledger_accounts set debits_posted = new.debits_posted + 1 where id = new.id; end`,
    found: 'ledger',
  },
  {
    bug: 'a charge exceeds the metered time',
    trigger: `after update of charged_uusd on usage_meters when new.charged_uusd > old.charged_uusd begin
      update usage_meters set charged_uusd = new.charged_uusd + 1 where pod_id = new.pod_id; end`,
    found: 'metered',
  },
  {
    bug: 'a pod is metered at another price than it was rented for',
    trigger: `after insert on usage_meters begin
      update usage_meters set price_uusd_per_gpu_hour = 2 * new.price_uusd_per_gpu_hour
      where pod_id = new.pod_id; end`,
    found: 'metered',
  },
  {
    bug: 'credit is lost on its way to an account',
    trigger: `after update of credits_posted on ledger_accounts when new.credits_posted > old.credits_posted begin
      update ledger_accounts set credits_posted = old.credits_posted where id = new.id; end`,
    found: 'ledger',
  },
  {
    bug: 'a provider receives more than its share of a charge',
    trigger: `after update of provider_uusd on usage_meters when new.provider_uusd > old.provider_uusd begin
      update usage_meters set provider_uusd = new.provider_uusd + 1 where pod_id = new.pod_id; end`,
    found: 'metered',
  },
  {
    bug: 'a pod never finishes its start',
    trigger: `before update of state on pods when new.state in ('running', 'creation_failed') begin
      select raise(ignore); end`,
    found: 'rental-decided',
  },
  {
    bug: 'a request has an internal error',
    trigger: `after update of state on pods when new.state = 'running' begin
      update pods set state = 'creating' where id = new.id; end`,
    found: 'errors',
  },
];

it.each(BUGS)('finds that $bug', async ({ trigger, found }) => {
  const { violation } = await simulateDay(7, {
    prepare: async ({ db }) => void (await runSql(db, `create trigger deliberate_bug ${trigger}`)),
  });
  expect(violation?.invariant, violation?.what).toBe(found);
  expect(violation?.events).toBeLessThan(MAX_EVENTS);
});

it('ends a run in which timers add each other for ever, and names them', async () => {
  const { violation } = await simulateDay(7, {
    prepare: async ({ clock }) => {
      async function endlessRetry(): Promise<void> {
        await clock.sleep(HOUR_MS);
        for (;;) await clock.sleep(0);
      }
      void endlessRetry();
    },
  });
  expect(violation?.invariant).toBe('progress');
  expect(violation?.what).toMatch(/the last by endlessRetry /);
});
