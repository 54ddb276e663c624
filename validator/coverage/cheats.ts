/**
 * Dishonest hosts: for each, how an inspection of it differs from one of an honest host. `policy coverage` judges these
 * facts, and a contract test produces them with agents that cheat. Pure.
 */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Facts } from '../checks/check.ts';
import type {
  GpuProofFacts,
  Measured,
  ProofFacts,
  RentalFact,
  RentalFacts,
  RentalStep,
  Unanswered,
} from '../checks/measured.ts';
import { CARDS, USUAL_MS } from './honest-host.ts';

export type Cheat = {
  /** Stable. */
  id: string;
  /** Completes a sentence that begins with "A host that". */
  cheat: string;
  /** Changes of the listing in the market. */
  listing?: Partial<ExecutorToCheck>;
  /** Changes of the agent's report, in inspection `look`, counted from 1. */
  inventory?(inventory: Inventory, look: number): Inventory;
  /** Changes of the facts that the validator measures. */
  measured?(measured: Measured, look: number): Partial<Measured>;
  /** True: the probe container is not started. */
  hasNoProbe?: true;
  /** Number of the first inspection during which the host is rented; absent if the host is never rented. */
  rentedFrom?: number;
  /** Means that detects the cheat, which inspections cannot, and its cost for the provider. */
  hidden?: Hidden;
};

/**
 * `rentals`: a hidden rental finds the cheat, because it sees the host as a renter does; `shows` is a fact below the
 * offer. `nothing`: no program finds it.
 */
export type Hidden =
  | { foundBy: 'rentals'; shows: RentalFact; costs: string }
  | { foundBy: 'nothing'; costs: string };

type Gpu = Inventory['gpu'];
type Device = Gpu['devices'][number];
type Sources = NonNullable<Inventory['sources']>;

export const withGpu = (change: (gpu: Gpu) => Partial<Gpu>) => ({
  inventory: (inventory: Inventory): Inventory => ({
    ...inventory,
    gpu: { ...inventory.gpu, ...change(inventory.gpu) },
  }),
});
export const everyCard = (change: Partial<Device>) =>
  withGpu(({ devices }) => ({ devices: devices.map((device) => ({ ...device, ...change })) }));

/** Changes the data of kernel and driver in an inventory. */
export const sourcesChanged = (
  { sources, ...inventory }: Inventory,
  change: (sources: Sources) => Partial<Sources>,
): Inventory => ({ ...inventory, sources: sources && { ...sources, ...change(sources) } });

const withUpdate = (change: Partial<NonNullable<Inventory['update']>>) => ({
  inventory: ({ update, ...inventory }: Inventory): Inventory => ({
    ...inventory,
    update: update && { ...update, ...change },
  }),
});

const unanswered = (question: Unanswered['question'], problem: string): Partial<Measured> => ({
  unanswered: [{ question, problem, repeated: false }],
});

const hostProof = (change: Partial<ProofFacts>) => (measured: Measured) => ({
  proof: measured.proof && { ...measured.proof, ...change },
});
const cardProof = (change: Partial<GpuProofFacts>) => (measured: Measured) => ({
  gpu_proof: measured.gpu_proof && { ...measured.gpu_proof, ...change },
});
const MISMATCH = { status: 'failed', reason: 'POW_MISMATCH', ms: null, wall_ms: null } as const;
const LATE = { ...MISMATCH, reason: 'POW_TIMEOUT' } as const;
/** Facts of proofs with wrong results, of the processor and of every card. */
const wrongProofs = (measured: Measured): Partial<Measured> => ({
  ...hostProof({ ...MISMATCH, part: 'product' })(measured),
  ...cardProof({ ...MISMATCH, cards: faultyCards(measured, 'POW_MISMATCH') })(measured),
});

const faultyCards = ({ gpu_proof: proof }: Measured, reason: string): GpuProofFacts['cards'] =>
  (proof?.cards ?? []).map((card) => ({ ...card, reason }));

/** Changes the result of the first card. */
const oneCardFails = (reason: string) => (measured: Measured) => {
  const [first, ...others] = measured.gpu_proof?.cards ?? [];
  const cards = first === undefined ? [] : [{ ...first, reason }, ...others];
  return cardProof({ status: 'failed', reason, cards })(measured);
};

const portsWith = (change: Partial<NonNullable<Measured['ports']>>) => (measured: Measured) => ({
  ports: measured.ports && { ...measured.ports, ...change },
});
const missingProof = cardProof({
  status: 'missing',
  reason: 'GPU_PROOF_MISSING',
  ms: null,
  wall_ms: null,
  cards: [],
});

/** Reports `count` cards like the first, in agreement with kernel and driver. */
function withCards(inventory: Inventory, count: number, change: Partial<Device>): Inventory {
  const [first] = inventory.gpu.devices;
  if (first === undefined) return inventory;
  const devices = Array.from({ length: count }, (_, index): Device => {
    const uuid = `${first.uuid.slice(0, -2)}${index.toString(16).padStart(2, '0')}`;
    return { ...first, ...change, index, uuid };
  });
  return sourcesChanged({ ...inventory, gpu: { ...inventory.gpu, devices } }, () => ({
    driver_gpus: devices.map(({ uuid, name: model }) => ({ uuid, model })),
    pci_gpus: count,
  }));
}

function withoutFirstCard(inventory: Inventory): Inventory {
  const devices = inventory.gpu.devices.slice(1);
  const others = { ...inventory, gpu: { ...inventory.gpu, devices } };
  return sourcesChanged(others, ({ driver_gpus: cards }) => ({
    driver_gpus: cards?.slice(1) ?? null,
    pci_gpus: 1,
  }));
}

const rentalWith = (change: Partial<RentalFacts>) => (measured: Measured) => ({
  rental: measured.rental && { ...measured.rental, memory: null, ...change },
});
const failedProbe = (step: RentalStep, detail: string) =>
  rentalWith({ status: 'failed', step, detail });
const skippedProbe = (change: Partial<RentalFacts>) =>
  rentalWith({ status: 'not_run', detail: 'not run', ...change });

const SMALL_MIB = 24_576;
const LARGE_MIB = 81_920;

/** Changes the memory of each card to that of a smaller model, or of a larger one if the cards themselves are small. */
const withOtherMemory = (inventory: Inventory, memoryMib: number): Inventory =>
  everyCard({ memory_total_mib: memoryMib > SMALL_MIB ? SMALL_MIB : LARGE_MIB }).inventory(
    inventory,
  );

const beside = everyCard({ processes: 2, outside_processes: 1 });
const OTHER_EXECUTOR = '00000000-0000-4000-8000-000000000002';
const UNRENTED_POD = '00000000-0000-4000-8000-0000000000aa';
const RENTED_POD = '00000000-0000-4000-8000-0000000000bb';
const SLOW = { ms: 5 * USUAL_MS, wall_ms: 5 * USUAL_MS };
/** Durations that the reported hardware cannot reach, and that variations of the network cannot explain. */
const FAST = { ms: 100, wall_ms: 100 };
const SLOW_KBIT = 10_000;
/** Number of inspections per measurement of the network speed, which is measured once an hour. */
const LOOKS_PER_LINE = 4;

export const CHEATS: readonly Cheat[] = [
  {
    id: 'other_model',
    cheat: 'reports another model',
    inventory: (inventory) =>
      withOtherMemory(inventory, inventory.gpu.devices[0]?.memory_total_mib ?? 0),
  },
  {
    id: 'missing_card',
    cheat: 'hides a missing card',
    inventory: withoutFirstCard,
  },
  {
    id: 'more_cores',
    cheat: 'reports more processor cores than its kernel',
    inventory: (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 128 } }),
  },
  {
    id: 'false_smi',
    cheat: 'reports cards that only nvidia-smi lists',
    ...withGpu(({ devices }) => ({
      devices: devices.map((each) => ({ ...each, uuid: `${each.uuid}0` })),
    })),
    // Cards of another host compute the proofs for these names.
    measured: (measured) => {
      const cards = measured.gpu_proof?.cards ?? [];
      const renamed = cards.map((card) => ({ ...card, uuid: `${card.uuid}0` }));
      return cardProof({ cards: renamed })(measured);
    },
  },
  {
    id: 'false_parts',
    cheat: 'reports whole cards as MIG parts, which need no proof',
    ...withGpu(({ devices }) => ({
      devices: devices.map((each) => ({
        ...each,
        uuid: each.uuid.replace('GPU', 'MIG'),
        mig: { profile: '7g.80gb', parent_uuid: each.uuid },
      })),
    })),
    measured: () => ({ gpu_proof: null }),
  },
  {
    id: 'no_sources',
    cheat: 'omits the data of its kernel and driver from its inventory',
    inventory: (inventory) => ({ ...inventory, sources: null }),
    measured: () => unanswered('sources', 'no kernel data'),
  },
  {
    id: 'no_processor_source',
    cheat: 'reports more processors and omits the kernel’s count',
    inventory: (inventory) => {
      const more = { ...inventory, cpu: { ...inventory.cpu, cores: 128 } };
      return sourcesChanged(more, () => ({ cpus_present: null }));
    },
    measured: () => unanswered('sources', 'no kernel data on: processors'),
  },
  { id: 'power_cap', cheat: 'throttles a card', ...everyCard({ power_limit_w: 300 }) },
  {
    id: 'driver_library',
    cheat: 'replaces the driver library',
    inventory: (inventory) =>
      sourcesChanged(inventory, () => ({ driver_library_sha256: 'b'.repeat(64) })),
  },
  {
    id: 'foreign_image',
    cheat: 'runs another image of the agent',
    ...withUpdate({ current_digest: `sha256:${'e'.repeat(64)}` }),
    measured: ({ releases }) => ({ releases: releases && { ...releases, is_known: false } }),
  },
  {
    id: 'stuck_update',
    cheat: 'never completes an update',
    ...withUpdate({ state: 'STAGED', since_ms: 0 }),
  },
  {
    id: 'clock',
    cheat: 'shifts its clock',
    inventory: (inventory) => ({ ...inventory, collected_ms: inventory.collected_ms + 60_000 }),
  },
  {
    id: 'side_use',
    cheat: 'uses a card outside pods',
    ...everyCard({ processes: 1, utilization_percent: 99 }),
  },
  {
    id: 'closed_ports',
    cheat: 'closes its ports',
    measured: portsWith({ reached: 0, problem: 'not reached' }),
  },
  {
    id: 'foreign_ports',
    cheat: 'has another host answer on its ports',
    measured: portsWith({ reached: 0, problem: 'not reached' }),
  },
  {
    id: 'refused_ports',
    cheat: 'refuses to open ports',
    measured: portsWith({ asked: 0, opened: 0, reached: 0, problem: 'busy', refused: true }),
  },
  {
    id: 'blocked_egress',
    cheat: 'blocks outgoing connections',
    measured: ({ egress }) => ({ egress: egress && { ...egress, registry: 'blocked' } }),
  },
  {
    id: 'unknown_registry',
    cheat: 'never lets its engine query a registry',
    measured: ({ egress }) =>
      egress === null
        ? {}
        : {
            egress: { ...egress, registry: 'unknown' },
            ...unanswered('registry', 'the engine did not answer'),
          },
  },
  {
    id: 'no_templates',
    cheat: 'cannot provide the templates',
    measured: ({ templates }) => ({
      templates: templates && {
        ...templates,
        images: templates.images.map((each) => ({ ...each, state: 'missing' })),
      },
    }),
  },
  {
    id: 'slow_line',
    cheat: 'throttles its network connection',
    // The first measurement follows the first inspection; the next is an hour later.
    measured: ({ line }, look) => {
      if (look === 1) return { line: null };
      const kbit = { down_kbit: SLOW_KBIT, up_kbit: SLOW_KBIT };
      const repeated = (look - 2) % LOOKS_PER_LINE !== 0;
      return { line: line && { ...line, ...kbit, repeated } };
    },
  },
  { id: 'precomputed_proof', cheat: 'precomputes its proof', measured: wrongProofs },
  {
    id: 'replayed_proof',
    cheat: 'replays a proof',
    // The first proof is genuine.
    measured: (measured, look) => (look === 1 ? {} : wrongProofs(measured)),
  },
  {
    id: 'no_memory_walk',
    cheat: 'invents the fill of its memory',
    measured: hostProof({ ...MISMATCH, part: 'memory' }),
  },
  {
    id: 'tenth_of_memory',
    cheat: 'keeps a tenth of the fills of memory and cards, and computes the rest when it is read',
    measured: (measured) => ({
      ...hostProof({ ...LATE, part: 'memory' })(measured),
      ...cardProof({ ...LATE, cards: faultyCards(measured, 'POW_TIMEOUT') })(measured),
    }),
  },
  { id: 'slow_processor', cheat: 'computes slowly', measured: hostProof(SLOW) },
  {
    id: 'disguised_slowness',
    cheat: 'delays its inventory to disguise slow work as network time',
    measured: hostProof({ ms: 3 * USUAL_MS, wall_ms: 3 * USUAL_MS }),
  },
  { id: 'slow_cards', cheat: 'computes slowly on its cards', measured: cardProof(SLOW) },
  {
    id: 'relayed_cards',
    cheat: 'has faster cards of another host compute its answers',
    measured: cardProof(FAST),
  },
  { id: 'swapped_card', cheat: 'swaps a card', measured: oneCardFails('UUID_MISMATCH') },
  {
    id: 'absent_card',
    cheat: 'lists a card that does not exist',
    measured: oneCardFails('DEVICE_ABSENT'),
  },
  {
    id: 'used_card_memory',
    cheat: 'lists card memory that is in use',
    measured: oneCardFails('VRAM_UNAVAILABLE'),
  },
  {
    id: 'no_card_proof',
    cheat: 'omits the proof of its cards',
    measured: missingProof,
  },
  {
    id: 'hidden_pods',
    cheat: 'hides its pods',
    measured: () => ({ pods: null, ...unanswered('pods', 'this route is hidden') }),
  },
  {
    id: 'no_probe',
    cheat: 'does not start a probe container',
    measured: () => unanswered('container', 'this route is hidden'),
    hasNoProbe: true,
  },
  {
    id: 'no_port_check',
    cheat: 'does not answer the port check',
    measured: () => ({ ports: null, ...unanswered('ports', 'this route is hidden') }),
  },
  {
    id: 'no_registry_check',
    cheat: 'does not query the registry',
    measured: ({ egress }) =>
      egress === null ? {} : { egress: null, ...unanswered('registry', 'this route is hidden') },
  },
  {
    id: 'aborted_proofs',
    cheat: 'aborts its proofs',
    measured: (measured) => ({
      ...hostProof({ status: 'not_measured', ms: null, wall_ms: null })(measured),
      ...cardProof({ status: 'not_measured', ms: null, wall_ms: null, cards: [] })(measured),
      ...unanswered('proof', 'no answer'),
    }),
  },
  {
    id: 'opens_no_port',
    cheat: 'opens none of its ports',
    measured: portsWith({ opened: 0, reached: 0 }),
  },
  {
    id: 'relayed_processor',
    cheat: 'has a faster host compute its answers',
    measured: hostProof(FAST),
  },
  {
    id: 'invented_proofs',
    cheat:
      'has no card, reports eight H200 in agreement with all sources, and invents their proofs',
    listing: { gpu_type: 'NVIDIA H200', gpu_count: 8 },
    inventory: (inventory) =>
      withCards(inventory, 8, { name: 'NVIDIA H200', memory_total_mib: 143_771 }),
    measured: wrongProofs,
  },
  {
    id: 'unproven_liar',
    cheat: 'has no card, reports eight H200 in agreement with all sources, and omits their proofs',
    listing: { gpu_type: 'NVIDIA H200', gpu_count: 8 },
    inventory: (inventory) =>
      withCards(inventory, 8, { name: 'NVIDIA H200', memory_total_mib: 143_771 }),
    measured: missingProof,
  },
  {
    id: 'ended_proofs',
    cheat: 'proves its cards once, and reports their memory as in use from then on',
    measured: (measured, look) => {
      const reason = 'VRAM_UNAVAILABLE';
      const cards = faultyCards(measured, reason);
      return look === 1 ? {} : cardProof({ status: 'failed', reason, cards })(measured);
    },
  },
  {
    id: 'shared_card',
    cheat: 'shares its cards with another node, whose proofs begin at the same time',
    measured: cardProof({ ms: 2 * USUAL_MS, wall_ms: 2 * USUAL_MS }),
  },
  {
    id: 'squatted_uuids',
    cheat: 'reports the UUIDs of cards that another node has',
    measured: (measured) => ({
      ...missingProof(measured),
      taken: CARDS.map((uuid) => ({ uuid, executor_id: OTHER_EXECUTOR })),
    }),
  },
  {
    id: 'stale_inventory',
    cheat: 'repeats an inventory of an hour ago',
    inventory: (inventory) => ({ ...inventory, collected_ms: inventory.collected_ms - 3_600_000 }),
  },
  {
    id: 'port_proxy',
    cheat: 'forwards half of its ports through a proxy, and no others',
    measured: (measured) => {
      const { opened = 0 } = measured.ports ?? {};
      return portsWith({ reached: Math.floor(opened / 2), problem: 'not reached' })(measured);
    },
  },
  {
    id: 'overstated_memory',
    cheat: 'offers more memory than the kernel has',
    inventory: (inventory) => {
      const total_kib = 2 * inventory.memory.total_kib;
      return { ...inventory, memory: { ...inventory.memory, total_kib } };
    },
  },
  {
    id: 'overstated_disk',
    cheat: 'offers a larger disk than its device',
    inventory: (inventory) => {
      const total_kib = 2 * inventory.disk.total_kib;
      return { ...inventory, disk: { ...inventory.disk, total_kib } };
    },
  },
  {
    id: 'simulated_cards',
    cheat: 'offers simulated cards',
    inventory: (inventory) => ({
      ...inventory,
      simulated: true,
      gpu: { ...inventory.gpu, driver: 'simulated' },
      sources: inventory.sources && { ...inventory.sources, pci_gpus: 0, driver_gpus: null },
    }),
    measured: () => ({ gpu_proof: null }),
  },
  {
    id: 'too_many_cards',
    cheat: 'offers cards that fit into no host',
    listing: { gpu_count: 64 },
    inventory: (inventory) => withCards(inventory, 64, {}),
    measured: missingProof,
  },
  {
    id: 'starved_pods',
    cheat: 'limits every pod to less than it offers',
    measured: failedProbe('inside', 'the pod has 1 of 32 cores'),
  },
  {
    id: 'invented_commands',
    cheat: 'has an SSH gateway that invents the output of commands',
    measured: failedProbe('command', 'a command returned an unexpected answer'),
  },
  {
    id: 'refused_pods',
    cheat: 'refuses every test rental',
    measured: skippedProbe({ refused: true }),
  },
  {
    id: 'occupied',
    cheat: 'evades test rentals with a pod without a renter',
    measured: skippedProbe({ pods: [UNRENTED_POD] }),
  },
  {
    id: 'removed_cards',
    cheat: 'removes a card after it was accepted',
    inventory: (inventory, look) => (look === 1 ? inventory : withoutFirstCard(inventory)),
  },
  {
    id: 'side_use_while_rented',
    cheat: 'computes on the cards of its renter',
    rentedFrom: 2,
    inventory: (inventory, look) => (look === 1 ? inventory : beside.inventory(inventory)),
  },
  {
    id: 'closed_ssh',
    cheat: 'closes the SSH port of its renter',
    rentedFrom: 2,
    measured: (_, look) => (look < 2 ? {} : { ssh: [{ pod: 'pod', problem: 'refused' }] }),
  },
  {
    id: 'starved_renters',
    cheat: 'starves its renters, and not the pods that resemble a test rental',
    hidden: {
      foundBy: 'rentals',
      shows: 'cores',
      costs:
        'Renters report it, and the host must provide all offered resources for each test rental.',
    },
  },
  {
    id: 'relayed_in_time',
    cheat: 'relays its proofs to a host with real cards, and answers in the usual time',
    hidden: {
      foundBy: 'rentals',
      shows: 'cards',
      costs:
        'One real card for each card that it claims in a round, because the proofs of up to 64 nodes begin at the same time.',
    },
  },
  {
    id: 'scheduled_sharing',
    cheat: 'uses its cards for others between two proofs, and stops in time',
    hidden: {
      foundBy: 'rentals',
      shows: 'card_in_use',
      costs:
        'The provider can only do work that can stop at any moment. Work that also stops when a rental starts takes nothing from renters, and is not found.',
    },
  },
  {
    id: 'doctored_probe',
    cheat: 'has an SSH gateway that changes only the output of the probe’s program',
    hidden: {
      foundBy: 'rentals',
      shows: 'memory',
      costs:
        'The gateway must recognise every version of the probe’s program and invent correct output for it.',
    },
  },
  {
    id: 'ports_for_checks',
    cheat: 'opens its ports for the check, and closes them for renters',
    hidden: {
      foundBy: 'rentals',
      shows: 'login',
      costs: 'The SSH port of each rented pod must stay open.',
    },
  },
  {
    id: 'false_monitoring',
    cheat: 'declares its work on the cards of a renter as monitoring',
    hidden: {
      foundBy: 'rentals',
      shows: 'card_in_use',
      costs: 'At most two processes for each card, which the evidence shows.',
    },
  },
  {
    id: 'own_rentals',
    cheat: 'rents its own node in a thin market',
    hidden: {
      foundBy: 'nothing',
      costs:
        'The market’s fee for every hour. The provider also advances the price until the payout returns it.',
    },
  },
  {
    id: 'relayed_host',
    cheat: 'relays every byte to a larger machine',
    hidden: {
      foundBy: 'nothing',
      costs:
        'The larger machine for the whole time: renters get what they pay for, with a longer round trip.',
    },
  },
];

/** Facts of inspection `look` of the host that cheats. */
export function cheatingFacts(honest: Facts, cheat: Cheat, look: number): Facts {
  const { inventory } = honest;
  const isRented = look >= (cheat.rentedFrom ?? Number.POSITIVE_INFINITY);
  const seen = isRented ? whileRented(honest) : honest;
  return {
    ...seen,
    executor: { ...seen.executor, ...cheat.listing },
    inventory: inventory === null ? null : (cheat.inventory?.(inventory, look) ?? inventory),
    probe: cheat.hasNoProbe === true ? null : seen.probe,
    measured: {
      ...seen.measured,
      hidden_rental: hiddenRentalOf(cheat, honest, look),
      ...cheat.measured?.(seen.measured, look),
    },
  };
}

/** Inspections of a day. */
const DAY_LOOKS = 96;

/**
 * The result of the last hidden rental. The policy sets the number of rentals in a day; the first one ends at the latest
 * when the first interval of that length ends.
 */
function hiddenRentalOf(
  { hidden }: Cheat,
  { policy, receivedMs: ended_ms }: Facts,
  look: number,
): Measured['hidden_rental'] {
  const perDay = policy.checks.hidden_rentals_per_day;
  if (perDay === 0 || look <= Math.ceil(DAY_LOOKS / perDay)) return null;
  const rental = { mismatches: [], seen_once: [], down_kbit: null, ended_ms };
  if (hidden?.foundBy !== 'rentals') return rental;
  const mismatch = { fact: hidden.shows, offered: 'as listed', seen: ['less', 'less'] };
  return { ...rental, mismatches: [mismatch] };
}

/** A rented host gets no trials. */
const whileRented = (facts: Facts): Facts => ({
  ...facts,
  executor: { ...facts.executor, rented: true, pod_ids: [RENTED_POD] },
  probe: null,
  measured: {
    ...facts.measured,
    pods: [{ id: RENTED_POD, phase: 'running', reason: null, gpu_uuids: [...CARDS] }],
    proof: null,
    gpu_proof: null,
    ports: null,
    egress: null,
    templates: null,
    rental: null,
  },
});
