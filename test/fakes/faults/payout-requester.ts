/** A process that requests the payout of PAYOUT_PARTY from a payout processor that never answers. */
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createAccountPods } from '../../../validator/central/market/cut-off/cut-off.ts';
import { createPayoutJob } from '../../../validator/central/money/payouts/payout.job.ts';
import { createPayouts } from '../../../validator/central/money/payouts/payout.service.ts';
import { createSimulatedPayouts } from '../../../validator/central/money/payouts/simulated-payouts.ts';
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import { payoutKeyOf } from '../../../validator/central/providers/provider.service.ts';

const { PAYOUT_DATABASE: target = '', PAYOUT_PARTY: id = '' } = process.env;
const db = await openCentralDatabase(target);
const ports = { db, clock: systemClock, random: systemRandom };
const payouts = createPayouts({ ...ports, pods: createAccountPods(ports), payoutKeyOf });
const simulated = createSimulatedPayouts(ports);
const processor = {
  name: simulated.name,
  async send(order: Parameters<typeof simulated.send>[0]) {
    await simulated.send(order);
    process.stdout.write('sent\n');
    return new Promise<never>(() => undefined);
  },
};
await payouts.request({ kind: 'provider', id });
const log = createLog({ name: 'requester', level: 'silent' });
// Keeps the process alive until it is killed: nothing else is open after the request.
setInterval(() => undefined, 1_000_000);
await createPayoutJob({ ...ports, log, processor, payouts }).runOnce();
