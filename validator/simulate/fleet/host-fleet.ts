/**
 * Hosts in memory behind the port through which validator and central API reach agents: each has cards, a line and a
 * conduct, and answers inspections, proofs, port checks and rental probes without network, containers or computation.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { type PortCheckRequest, portAnswer } from '#shared/api/agent/host-checks.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { AgentIdentity } from '../../checks/check.ts';
import type { LineFacts } from '../../checks/measured.ts';
import type { ReadPort } from '../../inspection/port-check.ts';
import type { SshLogin, SshPlace } from '../../inspection/rental-probe/ssh-session.ts';
import type { RunInPod } from '../../inspection/reports/pod-terminal.ts';
import { LoginFailed, type RenterLogin } from '../../probes/openssh-login.ts';
import { type Conduct, HONEST, honestInventory } from './conduct.ts';
import type { Cards } from './host-inventory.ts';
import { createModelAgents } from './model-agents.ts';
import { executorId, hotkey } from './model-keys.ts';
import { ANY_STATE, commitmentTo, FLEET_VERIFIER, sha256 } from './model-proofs.ts';
import { printedInPod, printedToValidator } from './pod-shell.ts';

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

export type HostFleet = ReturnType<typeof createHostFleet>;

const TWO_CARDS: Cards = { name: 'NVIDIA H100 80GB HBM3', count: 2, memoryMib: 81_559 };
const RANGE = { first: 31_000, last: 31_009 };
/** Length of a card's UUID after its prefix. */
const UUID_CHARS = 36;
const SSH_PORT = 31_000;
const POD_SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: 'ubuntu:24.04' },
  limits: { cpu_cores: 1, memory_bytes: 2 ** 30, shm_bytes: 2 ** 20, pids: 64 },
};
const RENTED_POD = '00000000-0000-4000-8000-0000000000aa';
const FAST_KBIT = 1_000_000;
/** Year 2248. */
const ENROLLED_UNTIL_MS = 2 ** 43;
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

export type HostFleetOptions = {
  clock: Clock;
  /** Resolves after a delay of a host. Tests with a manual clock advance it. */
  wait(ms: number): Promise<void>;
};

export function createHostFleet({ clock, wait }: HostFleetOptions) {
  const hosts = new Map<string, FleetHost>();
  /** Ids by network address. */
  const addresses = new Map<string, string>();
  const opened = new Map<string, PortCheckRequest>();
  const agents = createModelAgents();
  let added = 0;
  agents.useClock(clock);

  /** `id`: id of a node of a central API; by default, a new id. */
  function add({ id: given, ...change }: Partial<FleetHost> = {}): FleetHost {
    added += 1;
    const number = added;
    const id = given ?? executorId(number);
    const cards = change.cards ?? TWO_CARDS;
    const host: FleetHost = {
      id,
      listing: change.listing ?? listingOf(id, number, cards),
      cards,
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
    };
    hosts.set(id, host);
    addresses.set(host.listing.executor_ip_address, id);
    return host;
  }

  function hostOf(id: string): FleetHost {
    const host = hosts.get(id);
    if (host === undefined) throw new Error(`the fleet has no host ${id}`);
    return host;
  }

  const inventoryOf = (host: FleetHost): Inventory =>
    host.conduct.inventory(
      honestInventory(host.id, RANGE, {
        clock,
        cards: host.cards,
        seed: sha256(host.id).slice(0, UUID_CHARS),
      }),
    );

  /** Rejects as a client does if the agent does not answer, or rejects the route. */
  async function reach(host: FleetHost, route: string): Promise<Conduct> {
    const { conduct } = host;
    await wait(conduct.delayMs);
    if (!host.isUp || conduct.cuts.includes(route)) {
      throw new ApiError('upstream_unavailable', 'The node did not answer');
    }
    if (conduct.hides.includes(route)) throw new ApiError('forbidden', 'this route is hidden');
    return conduct;
  }

  function podOf(view: PodView, { id, startMs, probeStartMs }: FleetHost): PodView {
    if (view.phase !== 'running') return view;
    // Only a validator limits the lifetime of its pods.
    const isProbe = view.remove_after_seconds !== null;
    const readyMs = isProbe ? (probeStartMs ?? startMs) : startMs;
    const isReady = clock.now() - view.created_ms >= readyMs;
    if (!isReady) return { ...view, phase: 'starting' };
    const ssh = { port: SSH_PORT, host_key_fingerprint: id, host_key: null, ready: true };
    return { ...view, ssh };
  }

  function clientOf({ id }: Pick<ExecutorToCheck, 'id'>): AgentClient {
    const pods = agents.clientOf(id);
    const at = (route: string) => reach(hostOf(id), route);
    return {
      ...pods,
      async inventory() {
        const { inventoryMs } = await at('/v1/inventory');
        await wait(inventoryMs);
        return inventoryOf(hostOf(id));
      },
      async listPods() {
        await at('/v1/pods');
        const views = await pods.listPods();
        return views.map((view) => podOf(view, hostOf(id)));
      },
      async putPod(podId, spec) {
        await at('/v1/pods');
        const { podRefusal } = hostOf(id);
        if (podRefusal !== null) throw podRefusal;
        return podOf(await pods.putPod(podId, spec), hostOf(id));
      },
      async getPod(podId) {
        await at('/v1/pods');
        return podOf(await pods.getPod(podId), hostOf(id));
      },
      async verify() {
        await at('/v1/verify');
        const ok = hostOf(id).startsContainers;
        const reason_code = ok ? null : 'CONTAINER_START_FAILED';
        return { ok, reason_code, steps: [], simulated: false };
      },
      async checkPorts(request) {
        const { refuses, opensNone } = await at('/v1/port-checks');
        if (refuses) throw new ApiError('conflict', 'busy', { status: 409 });
        opened.set(addressOf(id), request);
        return { opened: opensNone ? [] : request.ports };
      },
      async checkEgress() {
        return { registry: (await at('/v1/egress-checks')).egress, problem: '' };
      },
      async checkImages({ images }) {
        const { images: state } = await at('/v1/image-checks');
        return { images: images.map((image) => ({ image, state, problem: '' })) };
      },
      async challenge(request) {
        const { nonce, proofMs, cardsMs, commitment } = await at('/v1/challenges');
        await wait(request.gpu === null ? proofMs : cardsMs);
        return commitment(commitmentTo({ ...request, nonce: nonce(request.nonce) }));
      },
      async openChallenge(_, { fill }) {
        const { readMs } = await at('/v1/challenges');
        await wait(readMs);
        const states = Array.from({ length: fill?.walk?.steps ?? 0 }, () => ANY_STATE);
        return { rows: [], fill: { states, leaves: [] } };
      },
    };
  }

  /** Network address of a host, by which the validator reaches its ports. */
  const addressOf = (id: string) => hostOf(id).listing.executor_ip_address;
  function hostAt(address: string): FleetHost | undefined {
    const isAt = ({ listing }: FleetHost) => listing.executor_ip_address === address;
    const known = hosts.get(addresses.get(address) ?? '');
    if (known !== undefined && isAt(known)) return known;
    // A listing may change.
    const found = [...hosts.values()].find(isAt);
    if (found !== undefined) addresses.set(address, found.id);
    return found;
  }

  const readPort: ReadPort = async (address, port) => {
    const host = hostAt(address);
    const request = opened.get(address);
    if (host === undefined || request === undefined) throw new Error('connection refused');
    const answer = host.conduct.answer(port, portAnswer(request, port));
    if (answer === null) throw new Error('connection refused');
    return answer;
  };

  /** Runs a command in the running pod of a renter. */
  const runInPod: RunInPod = async ({ id }, podId, command) => {
    const host = hostOf(id);
    const { phase } = await clientOf({ id }).getPod(podId);
    if (phase !== 'running') throw new ApiError('pod_state_conflict', `the pod is ${phase}`);
    return host.prints(printedToValidator(command, host.inPods(inventoryOf(host))), command);
  };

  const logIn: SshLogin = async ({ host: address }) => {
    const host = hostAt(address);
    if (host === undefined) throw new Error('connection refused');
    const inside = () => host.inPods(inventoryOf(host));
    return {
      run: async (command) => host.prints(printedToValidator(command, inside()), command),
      end: () => undefined,
    };
  };

  /** SSH as a renter uses it. */
  const logInAsRenter: RenterLogin = ({ host: address }) => {
    const reached = () => {
      const host = hostAt(address);
      if (host === undefined || host.sshProblem !== null) throw new LoginFailed('refused');
      return host;
    };
    return {
      run: async (command, input) => {
        const host = reached();
        return printedInPod(host.inRentals(inventoryOf(host)), command, input);
      },
      send: async () => {
        reached();
        return FAST_KBIT;
      },
      end: () => undefined,
    };
  };

  return {
    add,
    inventoryOf,
    logInAsRenter,
    remove(id: string): void {
      addresses.delete(hosts.get(id)?.listing.executor_ip_address ?? '');
      hosts.delete(id);
    },
    hostOf,
    /** Removes all pods of a host, as a crash of the host without its disk does. */
    losePods: (id: string): void => agents.host(id).pods.clear(),
    hosts: (): FleetHost[] => [...hosts.values()],
    /** Cards of a host, as its agent reports them. */
    cardsOf: (host: FleetHost) => {
      const { gpu, sources } = inventoryOf(host);
      return { devices: gpu.devices, sources };
    },
    clientOf,
    /** Executors as the central API lists them. */
    listings: (): ExecutorToCheck[] => [...hosts.values()].map(({ listing }) => listing),
    find: async (id: string): Promise<ExecutorToCheck> => hostOf(id).listing,
    identityOf: async ({ id }: Pick<ExecutorToCheck, 'id'>): Promise<AgentIdentity> => ({
      publicKey: sha256(id),
      enrolledUntilMs: ENROLLED_UNTIL_MS,
    }),
    lineOf: async (id: string): Promise<LineFacts | null> => hostOf(id).line,
    readPort,
    logIn,
    runInPod,
    /** The agents behind the central API's port: their pods are those of the hosts. */
    agents: { ...agents, clientOf: (id: string) => clientOf({ id }) },
    readBanner: async ({ host: address }: SshPlace) => hostAt(address)?.sshProblem ?? null,
    /** Starts a pod on the host, as for a renter, and lists the host as rented. */
    async rent(host: FleetHost): Promise<string> {
      const gpu_uuids = inventoryOf(host).gpu.devices.map(({ uuid }) => uuid);
      const podId = RENTED_POD;
      await agents.clientOf(host.id).putPod(podId, { ...POD_SPEC, gpu_uuids });
      host.listing = { ...host.listing, rented: true, pod_ids: [podId] };
      return podId;
    },
    endRental(host: FleetHost): void {
      agents.host(host.id).pods.delete(RENTED_POD);
      host.listing = { ...host.listing, rented: false, pod_ids: [] };
    },
    /** Changes the view of the rented pod. */
    changePod: (host: FleetHost, change: Partial<PodView>) =>
      agents.host(host.id).change(RENTED_POD, change),
    /** Starts a pod that the market does not list. */
    async occupy(host: FleetHost): Promise<void> {
      await agents.clientOf(host.id).putPod(RENTED_POD, POD_SPEC);
    },
    verifier: FLEET_VERIFIER,
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
