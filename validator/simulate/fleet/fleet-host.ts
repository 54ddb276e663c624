/** State of a host of the fleet, honest and idle by default. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { ApiError } from '#shared/runtime/errors.ts';
import type { LineFacts } from '../../checks/measured.ts';
import { type Conduct, HONEST } from './conduct.ts';
import type { Cards } from './host-inventory.ts';
import { executorId, hotkey } from './model-keys.ts';

/** State of a host, which its owner may change at any time. */
export type FleetHost = {
  id: string;
  listing: ExecutorToCheck;
  cards: Cards;
  conduct: Conduct;
  /** False: the agent does not answer. */
  isUp: boolean;
  /** Milliseconds until a pod runs, and until the small pod of a validator's probe runs; null: as any other pod. */
  startMs: number;
  probeStartMs: number | null;
  /** Null: the network connection was not measured. */
  line: LineFacts | null;
  /** True: probe containers start. */
  startsContainers: boolean;
  /** Resources inside a pod, from those that the host reports. */
  inPods(inventory: Inventory): Inventory;
  /** The same, for pods of renters. */
  inRentals(inventory: Inventory): Inventory;
  /** Returns what a command in a pod prints. */
  prints(honest: string, command: string): string;
  /** Thrown instead of accepting a pod; null accepts it. */
  podRefusal: ApiError | null;
  /** Problem of the SSH port of a running pod; null if it answers. */
  sshProblem: string | null;
};

const TWO_CARDS: Cards = { name: 'NVIDIA H100 80GB HBM3', count: 2, memoryMib: 81_559 };
/** Speed of the line of an honest host in kbit/s. */
export const FAST_KBIT = 1_000_000;
const FAST_LINE: LineFacts = {
  samples: 5,
  down_kbit: FAST_KBIT,
  up_kbit: FAST_KBIT,
  last_down_kbit: FAST_KBIT,
  last_up_kbit: FAST_KBIT,
  false_stream: null,
  refusals: 0,
  others_down_kbit: FAST_KBIT,
  others_up_kbit: FAST_KBIT,
  measured_ms: 1,
  repeated: false,
};

/** Creates a host with the number `number` of its fleet. */
export function createFleetHost(number: number, change: Partial<FleetHost>): FleetHost {
  const id = change.id ?? executorId(number);
  const cards = change.cards ?? TWO_CARDS;
  return {
    listing: listingOf(id, number, cards),
    conduct: HONEST,
    isUp: true,
    startMs: 0,
    probeStartMs: null,
    line: FAST_LINE,
    startsContainers: true,
    inPods: (inventory) => inventory,
    inRentals: (inventory) => inventory,
    prints: (honest) => honest,
    podRefusal: null,
    sshProblem: null,
    ...change,
    id,
    cards,
  };
}

const listingOf = (id: string, number: number, { name, count }: Cards): ExecutorToCheck => ({
  id,
  executor_ip_address: `192.0.2.${number}`,
  executor_ip_port: '8080',
  uptime_in_minutes: null,
  miner_hotkey: hotkey(number),
  gpu_type: name,
  gpu_count: count,
  gpu_uuids: [],
  rented: false,
  pod_ids: [],
  price_uusd: null,
  collateral_deposited: true,
});
