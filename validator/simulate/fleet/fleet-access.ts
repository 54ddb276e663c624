/** The fleet behind the ports of the services: the validator's access to hosts, and the central API's agents. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Agents } from '../../central/platform/ports.ts';
import type { HostAccess } from '../../inspection/links/host-access.ts';
import type { HostFleet } from './host-fleet.ts';

/** Change of a pod that the central API commands. `gpuUuids`: GPUs of a new specification. */
export type AgentCommand = {
  kind: 'put' | 'delete' | 'reboot' | 'stop' | 'start';
  executorId: string;
  podId: string;
  gpuUuids: readonly string[];
};

/** Called before an agent executes a command of the central API. */
export type OnCommand = (command: AgentCommand) => void;

const noGateway = (): never => {
  throw new ApiError('upstream_unavailable', 'the simulation does not relay through the gateway');
};

/** Returns the validator's access to the hosts. */
export function hostAccessOf(fleet: HostFleet): HostAccess {
  const { clientOf, identityOf, readPort, logIn, readBanner, runInPod, verifier } = fleet;
  return {
    clientOf,
    identityOf,
    readPort,
    logIn,
    readBanner,
    runInPod,
    verifier,
    observePort: async () => ({ found: 'refused', sent: 'tls' }),
    sendTo: () => async () => noGateway(),
    connectTo: () => async () => noGateway(),
    closeAll: () => undefined,
  };
}

/** The agents of the fleet, as the central API reaches them. `onCommand` receives each change of a pod. */
export function agentsOf(
  fleet: HostFleet,
  keys: { central: Hotkey; validator: Hotkey },
  onCommand: OnCommand,
): Agents {
  function clientOf(executorId: string): AgentClient {
    const client = fleet.agents.clientOf(executorId);
    const notify = (kind: AgentCommand['kind'], podId: string, gpuUuids: readonly string[] = []) =>
      onCommand({ kind, executorId, podId, gpuUuids });
    return {
      ...client,
      putPod(podId, spec) {
        notify('put', podId, spec.gpu_uuids ?? []);
        return client.putPod(podId, spec);
      },
      deletePod(podId) {
        notify('delete', podId);
        return client.deletePod(podId);
      },
      rebootPod(podId, reboot) {
        notify('reboot', podId);
        return client.rebootPod(podId, reboot);
      },
      setStopped(podId, stopped) {
        notify(stopped ? 'stop' : 'start', podId);
        return client.setStopped(podId, stopped);
      },
    };
  }
  return {
    ...fleet.agents,
    hotkey: keys.central,
    gateway: { ...fleet.agents.gateway, hotkey: keys.validator },
    clientOf,
  };
}
