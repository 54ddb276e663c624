/**
 * Conduct of agents and hosts that cheat as the table of cheats describes, for each cheat that needs more than a false
 * inventory.
 */
import type { CARD_FAULTS, Commitment } from '#shared/api/agent/challenges.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { CHEATS, type Cheat } from '../../coverage/cheats.ts';
import { USUAL_MS } from '../../coverage/honest-host.ts';
import { type Conduct, HONEST } from './conduct.ts';
import type { FleetHost } from './fleet-host.ts';
import type { HostFleet } from './host-fleet.ts';

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

/** Answers each challenge with the first genuine commitment of the device. */
function replaying(): Partial<Conduct> {
  const recorded: Partial<Record<'cpu' | 'gpu', Commitment>> = {};
  return {
    commitment: (commitment) => {
      const device = commitment.cards === null ? 'cpu' : 'gpu';
      const first = recorded[device] ?? commitment;
      recorded[device] = first;
      return { ...first, challenge_id: commitment.challenge_id };
    },
  };
}

const INVENTED_FILL = { root: '0'.repeat(64), fill_ms: 0 };

/** Conduct by the id of the cheat. A false inventory is part of the cheat itself. */
const CONDUCTS: Readonly<Record<string, Partial<Conduct>>> = {
  closed_ports: { answer: () => null },
  foreign_ports: { answer: (port) => `${port}` },
  refused_ports: { refuses: true },
  blocked_egress: { egress: 'blocked' },
  unknown_registry: { egress: 'unknown' },
  no_templates: { images: 'missing' },
  precomputed_proof: { nonce: () => 'A'.repeat(22) },
  no_memory_walk: { commitment: (each) => ({ ...each, memory: INVENTED_FILL }) },
  tenth_of_memory: { readMs: 40_000 },
  slow_processor: { proofMs: 5 * USUAL_MS },
  disguised_slowness: { proofMs: 3 * USUAL_MS, inventoryMs: 2_000 },
  slow_cards: { cardsMs: 5 * USUAL_MS },
  relayed_cards: { cardsMs: 100 },
  swapped_card: ofCards('UUID_MISMATCH'),
  absent_card: ofCards('DEVICE_ABSENT'),
  used_card_memory: ofCards('VRAM_UNAVAILABLE'),
  no_card_proof: ofCards(null),
  hidden_pods: { hides: ['/v1/pods'] },
  no_probe: { hides: ['/v1/verify'] },
  no_port_check: { hides: ['/v1/port-checks'] },
  no_registry_check: { hides: ['/v1/egress-checks'] },
  aborted_proofs: { cuts: ['/v1/challenges'] },
  opens_no_port: { opensNone: true },
  invented_proofs: { nonce: () => 'A'.repeat(22) },
  unproven_liar: ofCards(null),
  too_many_cards: ofCards(null),
  shared_card: { cardsMs: 2 * USUAL_MS },
  port_proxy: { answer: (port, honest) => (port % 2 === 0 ? honest : null) },
  relayed_processor: { proofMs: 100 },
};

const scriptOf = (id: string) => (id === 'replayed_proof' ? replaying() : CONDUCTS[id]);

/**
 * Returns the conduct of an agent that cheats with its answers; null if only its inventory is false, or if the cheat
 * concerns more than one agent.
 */
export function conductOf({ id, inventory, listing }: Cheat): Partial<Conduct> | null {
  const conduct = scriptOf(id);
  if (conduct === undefined || listing !== undefined) return null;
  const reported: Partial<Conduct> =
    inventory === undefined ? {} : { inventory: (honest) => inventory(honest, 1) };
  return { ...reported, ...conduct };
}

type Change = (host: FleetHost, cycle: number, fleet: HostFleet) => void | Promise<void>;

/** Changes a host of a fleet before a cycle so that it cheats. Throws for a cheat that no host of a fleet performs. */
export async function cheatBefore(
  cheat: Cheat,
  host: FleetHost,
  { cycle, fleet }: { cycle: number; fleet: HostFleet },
): Promise<void> {
  const { id, listing, inventory, rentedFrom } = cheat;
  const change = HOSTS[id];
  const conduct = scriptOf(id);
  if ((change ?? conduct ?? inventory) === undefined) {
    throw new Error(`no host cheats as ${id}`);
  }
  if (cycle === 1) host.listing = { ...host.listing, ...listing };
  // A replay must keep the first commitments.
  if (cycle === 1 || id !== 'replayed_proof') {
    const reported: Partial<Conduct> =
      inventory === undefined ? {} : { inventory: (honest) => inventory(honest, cycle) };
    host.conduct = { ...HONEST, ...reported, ...conduct };
  }
  if (cycle === rentedFrom) await fleet.rent(host);
  await change?.(host, cycle, fleet);
}

const SLOW_KBIT = 10_000;

/** Cheats that concern more than the answers of one agent, by id. */
const HOSTS: Readonly<Record<string, Change>> = {
  slow_line: (host) => {
    const { line } = host;
    host.line = line && { ...line, down_kbit: SLOW_KBIT, up_kbit: SLOW_KBIT };
  },
  squatted_uuids: (host, _, fleet) => {
    const [victim] = fleet.hosts();
    if (victim === undefined) throw new Error('the fleet has no host');
    const { devices, sources } = fleet.cardsOf(victim);
    host.conduct = {
      ...HONEST,
      ...ofCards(null),
      inventory: (honest) => ({ ...honest, gpu: { ...honest.gpu, devices }, sources }),
    };
  },
  starved_pods: (host) => {
    host.inPods = (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 1 } });
  },
  invented_commands: (host) => {
    host.prints = () => 'ok';
  },
  refused_pods: (host) => {
    host.podRefusal = new ApiError('validation_error', 'no such pod');
  },
  occupied: async (host, cycle, fleet) => {
    if (cycle === 1) await fleet.occupy(host);
  },
  closed_ssh: (host) => {
    host.sshProblem = 'connection refused';
  },
};

/** Not performed in a simulation: lines are not measured. */
const NEEDS_LINE = 'slow_line';

/**
 * Cheats that a host of a simulation performs: those without a false listing, which the provider makes, and without a
 * rental or hidden rental of the validator.
 */
export const PERFORMED_CHEATS: readonly Cheat[] = CHEATS.filter(
  ({ id, listing, inventory, rentedFrom, hidden }) =>
    id !== NEEDS_LINE &&
    listing === undefined &&
    rentedFrom === undefined &&
    hidden === undefined &&
    (HOSTS[id] ?? scriptOf(id) ?? inventory) !== undefined,
);

/** Changes a host so that it cheats from now on. A false inventory depends on the number of earlier requests for it. */
export async function cheatForEver(cheat: Cheat, host: FleetHost, fleet: HostFleet): Promise<void> {
  await cheatBefore(cheat, host, { cycle: 1, fleet });
  const { inventory } = cheat;
  if (inventory === undefined) return;
  let looks = 0;
  host.conduct = {
    ...host.conduct,
    inventory(honest) {
      looks += 1;
      return inventory(honest, looks);
    },
  };
}
