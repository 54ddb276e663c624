/**
 * Dishonest agents: for each, its title, the check that detects it, the faked behaviour and the number of cycles until
 * detection.
 */
import type { CARD_FAULTS, Commitment } from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { type Conduct, USUAL_MS } from '../fakes/agents/conducted-agent.ts';

type Gpu = Inventory['gpu'];
export const withGpu = (change: (gpu: Gpu) => Partial<Gpu>): Partial<Conduct> => ({
  inventory: (inventory) => ({ ...inventory, gpu: { ...inventory.gpu, ...change(inventory.gpu) } }),
});
export const everyCard = (change: Partial<Gpu['devices'][number]>) =>
  withGpu(({ devices }) => ({ devices: devices.map((device) => ({ ...device, ...change })) }));

type Sources = NonNullable<Inventory['sources']>;
/** Changes the inventory's kernel and driver sources. */
export const withSources = (change: (sources: Sources) => Partial<Sources>): Partial<Conduct> => ({
  inventory: (inventory) => {
    const { sources } = inventory;
    return { ...inventory, sources: sources && { ...sources, ...change(sources) } };
  },
});

/** Makes one card fail its proof with `code`; null: the agent sends no proof of its cards. */
const ofCards = (code: (typeof CARD_FAULTS)[number] | null): Partial<Conduct> => ({
  commitment: (commitment) => {
    if (commitment.cards === null || code === null) return { ...commitment, cards: null };
    const [first, ...others] = commitment.cards;
    if (first === undefined) throw new Error('no card');
    const fault = { code, detail: 'said by the driver' };
    return { ...commitment, cards: [{ ...first, fault, product: null, memory: null }, ...others] };
  },
});

let recorded: Commitment | null = null;

export const CHEATS: [cheat: string, reasons: string, conduct: Partial<Conduct>, looks: number][] =
  [
    ['of another model', 'gpu_vram GPU_VRAM_MISMATCH', everyCard({ memory_total_mib: 24_576 }), 1],
    [
      'of a missing card',
      'gpu_inventory GPU_COUNT_MISMATCH',
      {
        inventory: (inventory) => {
          const devices = inventory.gpu.devices.slice(1);
          const driver_gpus = inventory.sources?.driver_gpus?.slice(1) ?? null;
          const sources = inventory.sources && { ...inventory.sources, driver_gpus, pci_gpus: 1 };
          return { ...inventory, gpu: { ...inventory.gpu, devices }, sources };
        },
      },
      1,
    ],
    [
      'of an altered inventory',
      'cpu_truth CPU_OVERSTATED',
      { inventory: (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 128 } }) },
      1,
    ],
    [
      'of cards that only nvidia-smi knows',
      'gpu_sources_agree GPU_SOURCES_DISAGREE',
      withGpu(({ devices }) => ({
        devices: devices.map((each) => ({ ...each, uuid: `${each.uuid}0` })),
      })),
      1,
    ],
    [
      'of whole cards told as parts, which no proof is asked of',
      'gpu_parts GPU_PARTS_FALSE',
      withGpu(({ devices }) => ({
        devices: devices.map((each) => ({
          ...each,
          uuid: each.uuid.replace('GPU', 'MIG'),
          mig: { profile: '7g.80gb', parent_uuid: each.uuid },
        })),
      })),
      1,
    ],
    [
      'of an inventory that is compared with nothing',
      'answers QUESTIONS_UNANSWERED',
      { inventory: (inventory) => ({ ...inventory, sources: null }) },
      3,
    ],
    [
      'of more processors than the kernel is told of',
      'answers QUESTIONS_UNANSWERED',
      {
        inventory: ({ sources, ...inventory }) => ({
          ...inventory,
          cpu: { ...inventory.cpu, cores: 128 },
          sources: sources && { ...sources, cpus_present: null },
        }),
      },
      3,
    ],
    ['of a throttled card', 'power_limit GPU_POWER_CAPPED', everyCard({ power_limit_w: 300 }), 1],
    [
      'of a foreign library',
      'driver_library DRIVER_LIBRARY_MISMATCH',
      {
        inventory: ({ sources, ...inventory }) => ({
          ...inventory,
          sources: sources && { ...sources, driver_library_sha256: 'b'.repeat(64) },
        }),
      },
      1,
    ],
    [
      'of a foreign image of the agent',
      'image_digest AGENT_IMAGE_FOREIGN',
      {
        inventory: ({ update, ...inventory }) => ({
          ...inventory,
          update: update && { ...update, current_digest: `sha256:${'e'.repeat(64)}` },
        }),
      },
      1,
    ],
    [
      'of an update that never ends',
      'agent_update AGENT_UPDATE_STUCK',
      {
        inventory: ({ update, ...inventory }) => ({
          ...inventory,
          update: update && { ...update, state: 'STAGED', since_ms: 0 },
        }),
      },
      1,
    ],
    [
      'of a shifted clock',
      'clock CLOCK_SKEW',
      {
        inventory: (inventory) => ({ ...inventory, collected_ms: inventory.collected_ms + 60_000 }),
      },
      1,
    ],
    [
      'of a busy card',
      'gpu_idle_use GPU_BUSY_OUTSIDE_POD',
      everyCard({ processes: 1, utilization_percent: 99 }),
      2,
    ],
    ['of closed ports', 'ports PORTS_CLOSED', { answer: () => null }, 2],
    ['of ports that answer for others', 'ports PORTS_CLOSED', { answer: (port) => `${port}` }, 2],
    ['of ports that stay shut', 'ports PORTS_REFUSED', { refuses: true }, 3],
    ['of a host behind a wall', 'egress EGRESS_BLOCKED', { egress: 'blocked' }, 2],
    [
      'of an engine that never can be asked for a registry',
      'answers QUESTIONS_UNANSWERED',
      { egress: 'unknown' },
      3,
    ],
    [
      'of templates that cannot be had',
      'template_cache TEMPLATE_NOT_CACHED',
      { images: 'missing' },
      2,
    ],
    ['of a throttled line', 'bandwidth BANDWIDTH_LOW', { lineMs: 50 }, 2],
    [
      'of a precomputed proof',
      'pow_cpu POW_MISMATCH, pow_gpu POW_MISMATCH',
      { nonce: () => 'A'.repeat(22) },
      1,
    ],
    [
      'of a replayed proof',
      'pow_cpu POW_MISMATCH, pow_gpu POW_MISMATCH',
      {
        commitment: (commitment) => {
          recorded ??= commitment;
          return { ...recorded, challenge_id: commitment.challenge_id };
        },
      },
      2,
    ],
    [
      'of a skipped walk',
      'pow_mem POW_MISMATCH',
      { commitment: (each) => ({ ...each, memory: null }) },
      1,
    ],
    ['of slow answers', 'pow_cpu POW_TOO_SLOW', { proofMs: 5 * USUAL_MS }, 3],
    [
      'of an inventory that takes long, to have it taken for the way',
      'pow_cpu POW_TOO_SLOW',
      { proofMs: 3 * USUAL_MS, inventoryMs: 2_000 },
      3,
    ],
    ['of cards that work slowly', 'pow_gpu POW_TOO_SLOW', { cardsMs: 5 * USUAL_MS }, 3],
    ['of cards elsewhere', 'pow_gpu POW_TOO_FAST', { cardsMs: 100 }, 3],
    ['of a card that is another', 'pow_gpu UUID_MISMATCH', ofCards('UUID_MISMATCH'), 1],
    ['of a card that is not there', 'pow_gpu DEVICE_ABSENT', ofCards('DEVICE_ABSENT'), 3],
    ['of memory that is in use', 'pow_gpu VRAM_UNAVAILABLE', ofCards('VRAM_UNAVAILABLE'), 3],
    ['of cards that are not asked', 'pow_gpu GPU_PROOF_MISSING', ofCards(null), 3],
    ['of pods that are not told', 'answers QUESTIONS_UNANSWERED', { hides: ['/v1/pods'] }, 3],
    [
      'of a container that is not tried',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/verify'] },
      3,
    ],
    [
      'of ports that are not spoken of',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/port-checks'] },
      3,
    ],
    [
      'of a registry that is not asked',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/egress-checks'] },
      3,
    ],
    ['of proofs that break off', 'answers QUESTIONS_UNANSWERED', { cuts: ['/v1/challenges'] }, 3],
    ['of ports none of which is opened', 'ports PORTS_REFUSED', { opensNone: true }, 3],
    ['of answers from elsewhere', 'pow_cpu POW_TOO_FAST', { proofMs: 100 }, 3],
  ];
