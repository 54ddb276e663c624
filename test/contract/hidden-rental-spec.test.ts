/** The spec that an agent receives for a hidden rental, compared with that of the rental in the README. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { derivedRandom } from '#shared/runtime/random.ts';
import { podSpecFor } from '../../validator/central/market/pods/pod-spec.ts';
import type { Template } from '../../validator/central/platform/database/tables.ts';
import { ORDINARY_USE } from '../../validator/probes/ordinary-use.ts';
import { planRental, type RentBody } from '../../validator/probes/rental.plan.ts';
import { createTestMarket, type TestMarket } from '../fakes/scenes/market-fixture.ts';
import { testInventory } from '../fixtures/host-inventory.ts';

const PLANS = 2_000;
const GPUS = 8;
const NOTEBOOK_PORT = 8_888;
const inventory = testInventory('00000000-0000-4000-8000-000000000001', { gpus: GPUS });

let market: TestMarket;
let templates: Template[];
beforeAll(async () => {
  market = await createTestMarket();
  templates = await market.ports.db.selectFrom('templates').selectAll().execute();
});
afterAll(() => market.close());

/** The spec as the central API builds it for a rent request. */
function specOf(body: RentBody, publicKey: string): PodSpecInput {
  const template = templates.find(({ id }) => id === body.template_id);
  if (template === undefined) throw new Error('no such template');
  const uuids = inventory.gpu.devices.map(({ uuid }) => uuid);
  return podSpecFor({
    template,
    inventory,
    gpuUuids: uuids.slice(0, body.gpu_count ?? GPUS),
    gpuTotal: GPUS,
    portCount: body.initial_port_count ?? null,
    notebookPort: body.enable_jupyter === true ? NOTEBOOK_PORT : null,
    sshPublicKeys: [publicKey],
    secretNames: [],
  });
}

it('has only members that vary, or that equal those of an ordinary rental', () => {
  const [first, ...others] = templates.map(({ id }) => id);
  if (first === undefined) throw new Error('the market has no template');
  const choice = { allGpus: GPUS, freeGpus: GPUS, minGpus: 1, pricePerGpu: 2 };
  const specs = Array.from({ length: PLANS }, (_, at) => {
    const source = derivedRandom('the secret of the operator', `rental ${at}`);
    const { body, key } = planRental(source, ORDINARY_USE, {
      ...choice,
      templateIds: [first, ...others],
    });
    return specOf(body, `${key.type} AAAA ${key.comment}`);
  });
  const ordinary = specOf({ pod_name: 'hello', template_id: first }, 'ssh-ed25519 AAAA me@here');
  const members = new Set([...specs, ordinary].flatMap(Object.keys)) as Set<keyof PodSpecInput>;
  const constant = [...members].filter((name) => {
    const values = new Set(specs.map((spec) => JSON.stringify(spec[name])));
    return values.size === 1 && !values.has(JSON.stringify(ordinary[name]));
  });
  expect(constant).toEqual([]);
  const varied = ['internal_ports', 'gpu_uuids', 'limits', 'ssh_public_keys'];
  for (const name of varied as (keyof PodSpecInput)[]) {
    expect(new Set(specs.map((spec) => JSON.stringify(spec[name]))).size).toBeGreaterThan(1);
  }
});
