import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { onPostgres } from '../../test/fakes/scenes/central-database.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createHostLocks } from './host-locks.ts';
import { CLAIM_MS } from './inspection-queue.ts';

const log = createLog({ name: 'test', level: 'silent' });
const WAIT_MS = 60_000;

let store: EvidenceStore;
let clock: ManualClock;
let order: string[];
beforeEach(async () => {
  [store, clock, order] = [await createTestStore(), createManualClock(), []];
});
afterEach(() => store.destroy());

const processOf = (holder: string) => createHostLocks({ store, clock, log, holder });

/** Work that lasts until the test ends it. */
function work(name: string) {
  const end = Promise.withResolvers<void>();
  const begin = async () => {
    order.push(name);
    await end.promise;
    return name;
  };
  return { begin, end: end.resolve };
}

it('runs one trial per host at a time in order, and other hosts in parallel', async () => {
  const hosts = processOf('one');
  const [first, second, other] = [work('first'), work('second'), work('other')];
  const turns = [
    hosts.run('host', WAIT_MS, first.begin),
    hosts.run('host', WAIT_MS, second.begin),
    hosts.run('another', WAIT_MS, other.begin),
  ];
  await eventually('the work on both hosts', () => order.length === 2);
  expect(order.toSorted()).toEqual(['first', 'other']);
  // With a waiting time of 0 the work is skipped.
  expect(await hosts.run('host', 0, async () => 'begun')).toBeNull();
  for (const { end } of [first, second, other]) end();
  expect(await Promise.all(turns)).toEqual(['first', 'second', 'other']);
  expect(await hosts.run('host', 0, async () => 'free')).toBe('free');
});

it('waits for a lock no longer than requested, and rejects with the error of failed work', async () => {
  const hosts = processOf('one');
  const first = work('first');
  const long = hosts.run('host', WAIT_MS, first.begin);
  const waiting = hosts.run('host', WAIT_MS, async () => 'begun');
  await eventually('the first work', () => order.length === 1);
  await clock.advance(WAIT_MS);
  expect(await waiting).toBeNull();
  first.end();
  expect(await long).toBe('first');
  const failing = hosts.run('host', WAIT_MS, async () => {
    await clock.advance(2 * WAIT_MS);
    throw new Error('the work failed');
  });
  await expect(failing).rejects.toThrow('the work failed');
});

async function heldUntil(): Promise<number> {
  const lease = await store.selectFrom('leases').select('until_ms').executeTakeFirstOrThrow();
  return lease.until_ms;
}

it('locks a host against other processes while the work runs', async () => {
  const [one, two] = [processOf('one'), processOf('two')];
  const first = work('first');
  const long = one.run('host', WAIT_MS, first.begin);
  await eventually('the first work', () => order.length === 1);
  const isShared = onPostgres();
  // Longer than the lease lasts without extension; in small steps, so that the extensions can run.
  for (let step = 0; step < 64; step += 1) {
    await eventually('the lease to be extended', async () => {
      await clock.advance(CLAIM_MS / 32);
      return !isShared || (await heldUntil()) > clock.now() + CLAIM_MS / 2;
    });
  }
  expect(await two.run('host', 0, async () => 'begun')).toBe(isShared ? null : 'begun');
  first.end();
  await long;
  expect(await two.run('host', 0, async () => 'free')).toBe('free');
  // The lease of a killed process expires a moment later.
  const lease = { name: 'host host', holder: 'killed', until_ms: clock.now() + CLAIM_MS };
  await store.insertInto('leases').values(lease).execute();
  const waiting = two.run('host', WAIT_MS, async () => {
    order.push('taken over');
    return 'taken over';
  });
  await eventually('the lease of the killed process to expire', async () => {
    await clock.advance(1_000);
    return order.includes('taken over');
  });
  expect(await waiting).toBe('taken over');
});
