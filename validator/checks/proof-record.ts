/**
 * Records which proofs of work an executor was offered and has passed, and derives from that which of its cards have a
 * weight. Pure.
 */
import { CardUuid } from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Facts } from './check.ts';
import type { ProofRecord } from './measured.ts';
import { areCardsTimely, isTimely } from './proof.check.ts';

/** Validity of a proof. A device that is offered proofs for longer and passes none counts as unproven. */
const KEPT_MS = 24 * 3_600_000;
export const PROCESSOR = 'cpu';

type Entry = ProofRecord['devices'][number];

/**
 * Returns the record after a run. Proofs that the validator did not offer change nothing, and while the host is rented
 * the record stays as it was before the rental.
 */
export function recordAfter(before: ProofRecord | null, facts: Facts): ProofRecord | null {
  const { inventory, executor, receivedMs } = facts;
  if (inventory === null || executor.rented) return before;
  const known = new Map(before?.devices.map((entry) => [entry.device, entry]));
  const offered = offeredIn(facts, inventory);
  const devices = [PROCESSOR, ...cardsOf(inventory)].map((device): Entry => {
    const entry = known.get(device) ?? { device, offered_ms: null, proven_ms: null };
    const isProven = offered.get(device);
    if (isProven === undefined) return entry;
    if (isProven) return { device, offered_ms: null, proven_ms: receivedMs };
    return { ...entry, offered_ms: entry.offered_ms ?? receivedMs };
  });
  return { free_ms: receivedMs, devices };
}

const cardsOf = ({ gpu }: Inventory): string[] =>
  gpu.devices.flatMap(({ uuid }) => (CardUuid.safeParse(uuid).success ? [uuid] : []));

/** Devices that were offered a proof in this run, and whether they passed it in an acceptable time. */
function offeredIn(facts: Facts, inventory: Inventory): Map<string, boolean> {
  const { proof, gpu_proof: cards } = facts.measured;
  const offered = new Map<string, boolean>();
  if (proof !== null && !proof.repeated) {
    offered.set(PROCESSOR, proof.status === 'proven' && isTimely(proof, facts));
  }
  if (cards === null || cards.repeated) return offered;
  const isInTime = areCardsTimely(cards, facts);
  for (const uuid of cardsOf(inventory)) {
    const card = cards.cards.find((each) => each.uuid === uuid);
    offered.set(uuid, card?.reason === null && isInTime);
  }
  return offered;
}

/** Devices without a valid proof: those that failed and never passed one, and those that have passed none for a day since
 * their first failure. */
export function unprovenIn({ free_ms: atMs, devices }: ProofRecord): string[] {
  return devices
    .filter(({ offered_ms: offeredMs, proven_ms: provenMs }) => {
      if (offeredMs === null) return false;
      return provenMs === null || atMs - offeredMs >= KEPT_MS;
    })
    .map(({ device }) => device);
}

/** Cards that have passed a proof and are not unproven (`unprovenIn`). */
export function provenIn(record: ProofRecord | null): string[] {
  if (record === null) return [];
  const unproven = unprovenIn(record);
  return record.devices
    .filter(({ device, proven_ms: provenMs }) => {
      return device !== PROCESSOR && provenMs !== null && !unproven.includes(device);
    })
    .map(({ device }) => device);
}

/** Number of an inventory's devices that have no weight. Without a proof of the processor, that is all of them. */
export function weightlessIn(count: number, record: ProofRecord): number {
  const unproven = unprovenIn(record);
  return unproven.includes(PROCESSOR) ? count : Math.min(count, unproven.length);
}
