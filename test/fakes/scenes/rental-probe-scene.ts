/** Rental probes of a real agent with its SSH gateway, on the real Docker engine. */
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { Facts } from '../../../validator/checks/check.ts';
import { createRentalProbes } from '../../../validator/inspection/rental-probe/rental-probe.service.ts';
import { createSshLogin } from '../../../validator/inspection/rental-probe/ssh-session.ts';
import type { EvidenceStore } from '../../../validator/store/tables.ts';
import { checkRun } from '../../fixtures/check-run.ts';
import { startSshHost } from '../agents/ssh-host.ts';

const log = createLog({ name: 'test', level: 'silent' });

export type ProbedHost = Awaited<ReturnType<typeof startProbedHost>>;

/** Starts an agent with two simulated cards. The caller must call `stop()`. */
export async function startProbedHost() {
  const host = await startSshHost({
    AGENT_GPU: 'simulated',
    AGENT_SIMULATED_GPUS: 'NVIDIA L4*2',
  });
  return {
    ...host,
    async factsOf(change: Partial<Facts['executor']> = {}) {
      const inventory = await host.client().inventory();
      const { facts } = checkRun({ atMs: systemClock.now() });
      const executor = { ...facts.executor, id: inventory.executor_id, ...change };
      return { ...facts, executor, inventory };
    },
    podsLeft: async () =>
      (await host.client().listPods()).filter(({ phase }) => phase !== 'removed'),
  };
}

/** Returns the probes of a validator that has just started on the store. */
export const probesOn = (store: EvidenceStore) =>
  createRentalProbes({
    store,
    clock: systemClock,
    random: systemRandom,
    log,
    logIn: createSshLogin(systemClock),
  });
