/**
 * Hosts in memory behind the port through which validator and central API reach agents: each has cards, a line and a
 * conduct, and answers inspections, proofs, port checks and rental probes without network, containers or computation.
 */
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
import { honestInventory } from './conduct.ts';
import { createFleetClients } from './fleet-client.ts';
import { createFleetHost, FAST_KBIT, type FleetHost } from './fleet-host.ts';
import { createModelAgents } from './model-agents.ts';
import { FLEET_VERIFIER, sha256 } from './model-proofs.ts';
import { printedInPod, printedToValidator } from './pod-shell.ts';

export type HostFleet = ReturnType<typeof createHostFleet>;

const RANGE = { first: 31_000, last: 31_009 };
/** Length of a card's UUID after its prefix. */
const UUID_CHARS = 36;
const POD_SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: 'ubuntu:24.04' },
  limits: { cpu_cores: 1, memory_bytes: 2 ** 30, shm_bytes: 2 ** 20, pids: 64 },
};
const RENTED_POD = '00000000-0000-4000-8000-0000000000aa';
/** Year 2248. */
const ENROLLED_UNTIL_MS = 2 ** 43;

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
  /** The image registry of all hosts. While it is down, no pod of a renter starts. */
  const registry = { isUp: true };
  let added = 0;
  agents.useClock(clock);

  /** `id`: id of a node of a central API; by default, a new id. */
  function add(change: Partial<FleetHost> = {}): FleetHost {
    added += 1;
    const host = createFleetHost(added, change);
    hosts.set(host.id, host);
    addresses.set(host.listing.executor_ip_address, host.id);
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

  const clientOf = createFleetClients({
    clock,
    agents,
    registry,
    hostOf,
    inventoryOf,
    wait,
    onPortCheck: (id, request) => void opened.set(addressOf(id), request),
  });

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
    registry,
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
