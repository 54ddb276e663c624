/** Conduct of an agent and its host under inspection: honest, except where its owner scripts it. */
import type { Commitment } from '#shared/api/agent/challenges.ts';
import type { EgressCheckResult, ImageAvailability } from '#shared/api/agent/host-checks.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { USUAL_MS } from '../../coverage/honest-host.ts';
import { type Cards, hostInventory } from './host-inventory.ts';
import { updateStatus } from './update-status.ts';

/** Digest of the driver library, on the host and in the image. */
export const DIGEST = 'a'.repeat(64);
export const AGENT_DIGEST = `sha256:${DIGEST}`;

/** Ways in which a scripted agent differs from an honest one. */
export type Conduct = {
  inventory(inventory: Inventory): Inventory;
  /** Delay before every answer, in milliseconds. */
  delayMs: number;
  /** Additional delays before the inventory, a proof of work, and a proof of work on a card, in milliseconds. */
  inventoryMs: number;
  proofMs: number;
  cardsMs: number;
  /** Delay in milliseconds before a fill is read. */
  readMs: number;
  commitment(commitment: Commitment): Commitment;
  /** Returns the nonce for which the agent answers a challenge. */
  nonce(nonce: string): string;
  answer(port: number, honest: string): string | null;
  /** True: opens no ports and rejects speed tests. */
  refuses: boolean;
  /** True: reports that it could open no port. */
  opensNone: boolean;
  /** `hides`: routes that the agent rejects. `cuts`: routes during which it closes the connection. */
  hides: readonly string[];
  cuts: readonly string[];
  /** Replaces the data that the agent sends in a speed test. `lineMs`: delay before the agent sends the data. */
  said(data: Said): Said;
  lineMs: number;
  egress: EgressCheckResult['registry'];
  images: ImageAvailability['state'];
};

export type Said = string | Uint8Array;

export const HONEST: Conduct = {
  inventory: (inventory) => inventory,
  delayMs: 0,
  inventoryMs: 0,
  proofMs: USUAL_MS,
  cardsMs: USUAL_MS,
  readMs: 0,
  commitment: (commitment) => commitment,
  nonce: (nonce) => nonce,
  answer: (_, honest) => honest,
  refuses: false,
  opensNone: false,
  hides: [],
  cuts: [],
  said: (data) => data,
  lineMs: 0,
  egress: 'answers',
  images: 'pullable',
};

/** Inventory of an honest host, by default with two cards. UUIDs are derived from `seed`, by default the executor's id. */
export function honestInventory(
  id: string,
  range: { first: number; last: number },
  { clock, seed = id, cards }: { clock: Pick<Clock, 'now'>; seed?: string; cards?: Cards },
): Inventory {
  const shape =
    cards === undefined ? {} : { gpus: cards.count, name: cards.name, memoryMib: cards.memoryMib };
  const inventory = hostInventory(id, { collectedMs: clock.now(), seed, ...shape });
  const { gpu } = inventory;
  return {
    ...inventory,
    simulated: false,
    gpu: { ...gpu, driver: 'nvidia' },
    ports: { ...range, free: range.last - range.first + 1 },
    update: updateStatus(AGENT_DIGEST, clock.now()),
    sources: {
      pci_gpus: gpu.devices.length,
      driver_gpus: gpu.devices.map(({ uuid, name }) => ({ uuid, model: name })),
      driver_library_sha256: DIGEST,
      cpus_present: inventory.cpu.cores,
      memory_kib: inventory.memory.total_kib,
      disk_kib: inventory.disk.total_kib,
      disk_writable: true,
      restic: '0.14.0',
    },
  };
}
