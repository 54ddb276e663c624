/**
 * A process of the central API on the database in NOTICE_FILE. It saves a notice for a node with a pod, sends no mail,
 * and waits until it is killed.
 */
import { naiveUtc, systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import { createManualClock } from '../manual-clock.ts';
import { createTestMarket } from '../scenes/market-fixture.ts';

const DAY_MS = 86_400_000;

const market = await createTestMarket({
  db: await openCentralDatabase(process.env['NOTICE_FILE'] ?? ''),
  clock: createManualClock(systemClock.now()),
  // The mailer exists, but the jobs that use it never run.
  mailer: {
    send: () => Promise.reject(new Error('the process must be killed before it sends a mail')),
    close: async () => undefined,
  },
});
const node = await market.verifiedNode({ gpus: 1 });
const renter = await market.renter();
const rented = await market.rent(renter, node.id);
const starting_at = `${naiveUtc(market.clock.now() + 2 * DAY_MS)}Z`;
const announced = await market.portal('POST', `/executors/${node.id}/notice-period`, {
  token: await market.logIn(),
  body: { starting_at, period_in_minute: 30 },
});
process.stdout.write(`${JSON.stringify([rented.status, announced.status, renter.email])}\n`);
// Keeps the process running until it is killed.
await systemClock.sleep(DAY_MS);
