/** Hidden rentals in a running marketplace: the public routes, a pod of the real engine, and SSH through the gateway. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { createHiddenRentals } from '../../validator/probes/hidden-rentals.service.ts';
import { createOpensshLogin } from '../../validator/probes/openssh-login.ts';
import { ORDINARY_USE, type OrdinaryUse } from '../../validator/probes/ordinary-use.ts';
import { readProbeAccounts } from '../../validator/probes/probe-accounts.ts';
import { createRenterClient } from '../../validator/probes/renter-client.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { eventually } from '../fakes/eventually.ts';
import { createTestStore } from '../fakes/scenes/test-evidence-store.ts';
import { demo, home, runMarketplace } from './marketplace-scene.ts';

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const clock = systemClock;

let store: EvidenceStore;
runMarketplace();
beforeAll(async () => {
  store = await createTestStore();
});
afterAll(() => store.destroy());

/** Short waits, the image that needs no registry, and one of two simulated cards. */
const USE: OrdinaryUse = {
  ...ORDINARY_USE,
  requests: [{ count: 1, template: 0, gpu_count: 1 }],
  between_measurements_ms: [2_000, 4_000],
  linger_ms: [0, 500],
};

/** `keyType`: type of the SSH key. */
const rentals = (keyType: 'rsa' | 'ecdsa') =>
  createHiddenRentals({
    store,
    clock,
    random: systemRandom,
    log: createLog({ name: 'test', level: 'silent' }),
    policy: { ...readCheckPolicy(), hidden_rentals_per_day: 0 },
    use: { ...USE, keys: [{ count: 1, type: keyType, bits: 2_048, comment: 'me@{hex}' }] },
    readAccounts: () => readProbeAccounts(join(home, 'probe-accounts.json')),
    clientOf: ({ api_key: apiKey }) =>
      createRenterClient({ baseUrl: demo().base_url, apiKey, clock }),
    logIn: createOpensshLogin(clock),
    listed: () => [],
    usdPerDay: 1_000,
    holdsLease: async () => true,
  });

const executorId = (at: number): string => demo().executors[at]?.id ?? '';

it('finds the offered resources in a pod of an honest host', async () => {
  const service = rentals('rsa');
  await service.rentInFirstFreeMoment(executorId(0));
  await service.runOnce();
  await service.settled();
  const facts = await service.facts(executorId(0));
  // Other programs on the computer of the test may take processor time from the pod.
  const others = facts?.mismatches.filter(
    ({ seen }) => !seen.some((value) => / busy$/.test(value)),
  );
  expect(others).toEqual([]);
  expect(facts?.down_kbit).toBeGreaterThan(0);
}, 300_000);

it('finds a pod that the host starves', async () => {
  const service = rentals('ecdsa');
  const executor = executorId(1);
  await service.rentInFirstFreeMoment(executor);
  await service.runOnce();
  const container = await eventually('the container of the pod', async () => {
    const [found] = await engine.listContainers({ [LABELS.executor]: executor });
    return found?.id;
  });
  execFileSync('docker', ['update', '--cpus', '0.1', container]);
  await service.settled();
  const facts = await service.facts(executor);
  const mismatch = { fact: 'cores', offered: '1 cores', seen: ['limit 0.1', 'limit 0.1'] };
  expect(facts?.mismatches).toContainEqual(mismatch);
}, 300_000);
