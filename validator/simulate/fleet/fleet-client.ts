/** Clients of the agents of the fleet: they answer inspections, proofs and checks according to the conduct of the host. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { PortCheckRequest } from '#shared/api/agent/host-checks.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Conduct } from './conduct.ts';
import type { FleetHost } from './fleet-host.ts';
import type { ModelAgents } from './model-agents.ts';
import { ANY_STATE, commitmentTo } from './model-proofs.ts';

const SSH_PORT = 31_000;

export type FleetClientParts = {
  clock: Pick<Clock, 'now'>;
  /** The agents that run the pods. */
  agents: Pick<ModelAgents, 'clientOf'>;
  /** The image registry of all hosts. While it is down, no pod of a renter starts. */
  registry: { isUp: boolean };
  hostOf(id: string): FleetHost;
  inventoryOf(host: FleetHost): Inventory;
  /** Resolves after a delay of a host. */
  wait(ms: number): Promise<void>;
  /** Receives each check of ports that a host accepts. */
  onPortCheck(executorId: string, request: PortCheckRequest): void;
};

/** Returns a function that creates the client of an agent. */
export function createFleetClients(parts: FleetClientParts) {
  const { clock, agents, registry, hostOf, inventoryOf, wait, onPortCheck } = parts;

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
    const isPulled = isProbe || registry.isUp;
    const isReady = isPulled && clock.now() - view.created_ms >= readyMs;
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
      async deletePod(podId) {
        await at('/v1/pods');
        return podOf(await pods.deletePod(podId), hostOf(id));
      },
      async rebootPod(podId, reboot) {
        await at('/v1/pods');
        return podOf(await pods.rebootPod(podId, reboot), hostOf(id));
      },
      async setStopped(podId, stopped) {
        await at('/v1/pods');
        return podOf(await pods.setStopped(podId, stopped), hostOf(id));
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
        onPortCheck(id, request);
        return { opened: opensNone ? [] : request.ports };
      },
      async checkEgress() {
        const { egress } = await at('/v1/egress-checks');
        return { registry: registry.isUp ? egress : 'unreachable', problem: '' };
      },
      async checkImages({ images }) {
        const { images: state } = await at('/v1/image-checks');
        const found = registry.isUp ? state : 'unknown';
        return { images: images.map((image) => ({ image, state: found, problem: '' })) };
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

  return clientOf;
}
