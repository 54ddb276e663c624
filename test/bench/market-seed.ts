/** Fills a database file with many marketplace nodes, to measure how fast they are listed. */

import { figuresOf, UNMEASURED } from '../../validator/central/market/executors/node-figures.ts';
import type {
  Database,
  GpuSlot,
  NewExecutor,
} from '../../validator/central/platform/database/tables.ts';
import { testInventory } from '../fixtures/host-inventory.ts';

const MACHINES = [
  'NVIDIA H100 80GB HBM3',
  'NVIDIA H200',
  'NVIDIA A100-SXM4-80GB',
  'NVIDIA L40S',
  'NVIDIA GeForce RTX 4090',
];
const GPU_COUNTS = [1, 2, 4, 8];
/** One of this many nodes has its first GPU rented. */
const RENTED_EVERY = 4;
const PER_INSERT = 500;
const PRICES = 997;
/** Degrees over which the nodes are spread. */
const LATITUDES = 120;
const LONGITUDES = 360;
const PROVIDER = '00000000-0000-4000-8000-00000000000a';

/** Inserts verified nodes of one provider; the same count always produces the same nodes. */
export async function seedMarket(db: Database, nodes: number): Promise<void> {
  const stamp = { created_at: 1, updated_at: 1 };
  const provider = { hotkey: 'h', coldkey: null, email: null, banned_at: null };
  await db
    .insertInto('providers')
    .values({ id: PROVIDER, ...provider, ...stamp, opted_in: 1 })
    .execute();
  for (let from = 0; from < nodes; from += PER_INSERT) {
    const indices = Array.from({ length: Math.min(PER_INSERT, nodes - from) }, (_, i) => from + i);
    const seeded = indices.map(nodeOf);
    await db.transaction().execute(async (tx) => {
      await tx
        .insertInto('executors')
        .values(seeded.map(({ node }) => node))
        .execute();
      await tx
        .insertInto('gpu_slots')
        .values(seeded.flatMap(({ slots }) => slots))
        .execute();
    });
  }
}

function nodeOf(index: number) {
  const id = `00000000-0000-4000-9000-${index.toString(16).padStart(12, '0')}`;
  const name = MACHINES[index % MACHINES.length] ?? '';
  const gpus = GPU_COUNTS[Math.floor(index / MACHINES.length) % GPU_COUNTS.length] ?? 1;
  const isRented = index % RENTED_EVERY === 0;
  const inventory = testInventory(id, { gpus, name });
  const node: NewExecutor = {
    ...UNMEASURED,
    ...figuresOf(inventory),
    id,
    provider_id: PROVIDER,
    ip_address: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
    port: 8_080,
    gpu_type: name,
    gpu_count: gpus,
    price_uusd_per_gpu_hour: 300_000 + ((index * 7_919) % PRICES) * 3_000,
    min_gpu_count: 1,
    collateral_deposited: 0,
    lat: (index % LATITUDES) - LATITUDES / 2,
    lon: (index % LONGITUDES) - LONGITUDES / 2,
    location_json: null,
    state: 'verified',
    paused: 0,
    validator_hotkey: 'v',
    verdict_at: 1,
    checks_json: '[]',
    machine_name: name,
    driver_version: inventory.gpu.driver_version,
    inventory_json: JSON.stringify(inventory),
    simulated: 1,
    first_verified_at: 1,
    reachable_since: 1,
    last_seen_at: 1,
    removed_at: null,
    slots_total: gpus,
    slots_free: isRented ? gpus - 1 : gpus,
    created_at: 1,
    updated_at: 1,
  };
  const slots: GpuSlot[] = inventory.gpu.devices.map(({ uuid }, idx) => ({
    executor_id: id,
    idx,
    gpu_uuid: uuid,
    pod_id: isRented && idx === 0 ? 'p' : null,
  }));
  return { node, slots };
}
