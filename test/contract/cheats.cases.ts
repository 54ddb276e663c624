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
    const fault = { code, detail: 'reported by the driver' };
    return { ...commitment, cards: [{ ...first, fault, product: null, memory: null }, ...others] };
  },
});

let recorded: Commitment | null = null;

export const CHEATS: [cheat: string, reasons: string, conduct: Partial<Conduct>, looks: number][] =
  [
    [
      'reports another model',
      'gpu_vram GPU_VRAM_MISMATCH',
      everyCard({ memory_total_mib: 24_576 }),
      1,
    ],
    [
      'hides a missing card',
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
      'alters its inventory',
      'cpu_truth CPU_OVERSTATED',
      { inventory: (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 128 } }) },
      1,
    ],
    [
      'reports cards that only nvidia-smi lists',
      'gpu_sources_agree GPU_SOURCES_DISAGREE',
      withGpu(({ devices }) => ({
        devices: devices.map((each) => ({ ...each, uuid: `${each.uuid}0` })),
      })),
      1,
    ],
    [
      'reports whole cards as MIG parts, which need no proof',
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
      'omits the sources of its inventory',
      'answers QUESTIONS_UNANSWERED',
      { inventory: (inventory) => ({ ...inventory, sources: null }) },
      3,
    ],
    [
      'reports more processors and omits the kernel’s count',
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
    ['throttles a card', 'power_limit GPU_POWER_CAPPED', everyCard({ power_limit_w: 300 }), 1],
    [
      'replaces the driver library',
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
      'runs another image of the agent',
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
      'never completes an update',
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
      'shifts its clock',
      'clock CLOCK_SKEW',
      {
        inventory: (inventory) => ({ ...inventory, collected_ms: inventory.collected_ms + 60_000 }),
      },
      1,
    ],
    [
      'uses a card outside pods',
      'gpu_idle_use GPU_BUSY_OUTSIDE_POD',
      everyCard({ processes: 1, utilization_percent: 99 }),
      2,
    ],
    ['closes its ports', 'ports PORTS_CLOSED', { answer: () => null }, 2],
    ['answers on ports for another host', 'ports PORTS_CLOSED', { answer: (port) => `${port}` }, 2],
    ['refuses to open ports', 'ports PORTS_REFUSED', { refuses: true }, 3],
    ['blocks outgoing connections', 'egress EGRESS_BLOCKED', { egress: 'blocked' }, 2],
    [
      'never lets its engine query a registry',
      'answers QUESTIONS_UNANSWERED',
      { egress: 'unknown' },
      3,
    ],
    [
      'cannot provide the templates',
      'template_cache TEMPLATE_NOT_CACHED',
      { images: 'missing' },
      2,
    ],
    ['throttles its line', 'bandwidth BANDWIDTH_LOW', { lineMs: 50 }, 2],
    [
      'precomputes its proof',
      'pow_cpu POW_MISMATCH, pow_gpu POW_MISMATCH',
      { nonce: () => 'A'.repeat(22) },
      1,
    ],
    [
      'replays a proof',
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
      'skips the memory walk',
      'pow_mem POW_MISMATCH',
      { commitment: (each) => ({ ...each, memory: null }) },
      1,
    ],
    ['computes slowly', 'pow_cpu POW_TOO_SLOW', { proofMs: 5 * USUAL_MS }, 3],
    [
      'delays its inventory to disguise slow work as network time',
      'pow_cpu POW_TOO_SLOW',
      { proofMs: 3 * USUAL_MS, inventoryMs: 2_000 },
      3,
    ],
    ['computes slowly on its cards', 'pow_gpu POW_TOO_SLOW', { cardsMs: 5 * USUAL_MS }, 3],
    [
      'has faster cards of another host compute its answers',
      'pow_gpu POW_TOO_FAST',
      { cardsMs: 100 },
      3,
    ],
    ['swaps a card', 'pow_gpu UUID_MISMATCH', ofCards('UUID_MISMATCH'), 1],
    ['lists a card that does not exist', 'pow_gpu DEVICE_ABSENT', ofCards('DEVICE_ABSENT'), 3],
    [
      'lists card memory that is in use',
      'pow_gpu VRAM_UNAVAILABLE',
      ofCards('VRAM_UNAVAILABLE'),
      3,
    ],
    ['omits the proof of its cards', 'pow_gpu GPU_PROOF_MISSING', ofCards(null), 3],
    ['hides its pods', 'answers QUESTIONS_UNANSWERED', { hides: ['/v1/pods'] }, 3],
    [
      'does not start a probe container',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/verify'] },
      3,
    ],
    [
      'does not answer the port check',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/port-checks'] },
      3,
    ],
    [
      'does not query the registry',
      'answers QUESTIONS_UNANSWERED',
      { hides: ['/v1/egress-checks'] },
      3,
    ],
    ['aborts its proofs', 'answers QUESTIONS_UNANSWERED', { cuts: ['/v1/challenges'] }, 3],
    ['opens none of its ports', 'ports PORTS_REFUSED', { opensNone: true }, 3],
    ['has a faster host compute its answers', 'pow_cpu POW_TOO_FAST', { proofMs: 100 }, 3],
  ];
