/** What can be asked of pods: put, get, list, remove, reboot, SSH keys. Intents are durable before they are answered. */
import type { PodCondition, PodSpec, PodView, PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import { PortPoolExhausted, type PortService } from '../ports/port.service.ts';
import type { SshService } from '../ssh/ssh.service.ts';
import type { PodRow } from '../store/pod.store.ts';
import type { GpuMode } from './pod.container.ts';
import { newPodRow, type PodContent, specHash } from './pod.record.ts';
import type { PodPatch, PodRecords } from './pod.records.ts';
import { REBOOTABLE_PHASES } from './pod.state.ts';
import type { PodSupervisor } from './pod.supervisor.ts';
import { podView } from './pod.view.ts';
import { checkPolicy, type HostLimits } from './policy.ts';

export type PodService = ReturnType<typeof createPodService>;

/** Live pods on one host; far above what its ports and GPUs allow. */
const MAX_PODS = 1_000;

/** Every method gives the pod's view and throws ApiError. */
export function createPodService(deps: {
  executorId: string;
  records: PodRecords;
  ports: PortService;
  gpuLeases: GpuLeases;
  gpuMode(): GpuMode;
  supervisor: PodSupervisor;
  clock: Clock;
  host: HostLimits;
  pullOf(podId: string): PullProgress | null;
  engineAway(): string | null;
  diskOf(podId: string): PodCondition | null;
  ssh: SshService;
}) {
  const { executorId, records, ports, gpuLeases, supervisor, clock } = deps;

  function viewOf(row: PodRow): PodView {
    return podView(row, {
      executorId,
      ports: ports.portsOf(row.id),
      gpuUuids: gpuLeases.uuidsOf(row.id),
      simulated: deps.gpuMode() === 'simulated',
      pull: deps.pullOf(row.id),
      engineAway: deps.engineAway(),
      disk: deps.diskOf(row.id),
      ssh: deps.ssh.viewOf(row),
    });
  }

  function find(id: string): PodRow {
    const row = records.get(id);
    if (row === null) throw new ApiError('pod_not_found', 'There is no such pod on this host');
    return row;
  }

  /** The row and its leases together, or none of it: a refusal leaves nothing behind. */
  function admit(id: string, spec: PodSpec): PodRow {
    const content = { spec_json: JSON.stringify(spec), spec_hash: specHash(spec) };
    return records.transaction(() => {
      const present = records.get(id);
      if (present !== null && isRepeat(present, spec.generation, content.spec_hash)) return present;
      if (present === null && records.countLive() >= MAX_PODS) {
        throw new ApiError('conflict', `This host takes no more than ${MAX_PODS} pods`);
      }
      const now = clock.now();
      const row =
        present === null
          ? records.insert(newPodRow(id, spec.generation, content, now))
          : records.apply(id, (old) => nextGeneration(old, spec, content));
      if (row === null) throw new Error('the pod vanished inside a transaction');
      deps.ssh.admit(id);
      gpuLeases.lease(id, spec.gpu_uuids);
      leasePorts(id, spec.internal_ports);
      return row;
    });
  }

  function leasePorts(id: string, internalPorts: readonly number[]): void {
    try {
      ports.lease(id, internalPorts);
    } catch (cause) {
      if (!(cause instanceof PortPoolExhausted)) throw cause;
      throw new ApiError('conflict', `PortPoolExhausted: ${cause.message}`, {
        hint: 'Ask for fewer ports or choose another node.',
        cause,
      });
    }
  }

  return {
    /** Idempotent by generation and content (design, "The agent's HTTP interface"). */
    async put(id: string, spec: PodSpec): Promise<PodView> {
      const present = records.get(id);
      const repeat = present !== null && isRepeat(present, spec.generation, specHash(spec));
      if (repeat) return viewOf(present);
      checkPolicy(spec, deps.host);
      await gpuLeases.checkPresent(spec.gpu_uuids);
      const row = admit(id, spec);
      supervisor.interrupt(id);
      return viewOf(row);
    },
    get: (id: string): PodView => viewOf(find(id)),
    /** All but the removed, oldest first. */
    list: (): PodView[] =>
      records
        .list()
        .filter((row) => row.phase !== 'removed')
        .map(viewOf),
    /** The last moves of a pod, oldest first. */
    events: (id: string) => records.events(find(id).id),
    /** Begins the removal; repeating it is harmless, also after its end. */
    remove(id: string): PodView {
      const row = find(id);
      if (row.desired === 'removed') return viewOf(row);
      const fresh = { reason: null, message: '', attempts: 0, next_retry_ms: null };
      const going = records.change(id, () => ({ ...fresh, desired: 'removed', phase: 'removing' }));
      supervisor.interrupt(id);
      return viewOf(going ?? row);
    },
    /** In force at once for new logins, sessions of keys left out end; repeating it is harmless. */
    putSshKeys(id: string, keys: readonly string[]): PodView {
      const row = find(id);
      if (row.desired === 'removed') {
        throw new ApiError('pod_state_conflict', 'This pod is being removed');
      }
      deps.ssh.setKeys(row, keys);
      deps.ssh.publish();
      return viewOf(row);
    },
    /** `count` is the number of reboots asked for so far, this one included: a repeat is no second reboot. */
    reboot(id: string, count: number): PodView {
      const row = find(id);
      if (count <= row.reboots_requested) return viewOf(row);
      if (count > row.reboots_requested + 1) {
        throw new ApiError('conflict', `The next reboot is number ${row.reboots_requested + 1}`);
      }
      if (!REBOOTABLE_PHASES.includes(row.phase)) {
        throw new ApiError('pod_state_conflict', `A pod that is ${row.phase} cannot be rebooted`);
      }
      const wanted = records.change(id, () => ({ reboots_requested: count }));
      supervisor.wake(id);
      return viewOf(wanted ?? row);
    },
  };
}

/** True when there is nothing to change; throws when the request contradicts what is stored. */
function isRepeat(row: PodRow, generation: number, hash: string): boolean {
  if (row.generation === generation && row.spec_hash === hash) return true;
  if (row.desired === 'removed') {
    throw new ApiError('conflict', 'This pod was removed; its id cannot be used again');
  }
  if (generation > row.generation) return false;
  const message =
    generation < row.generation
      ? `Generation ${row.generation} is stored, which is newer`
      : `Generation ${generation} is stored with other content`;
  throw new ApiError('conflict', message);
}

/** A new generation replaces the container, which answers a reboot that was still waiting. */
function nextGeneration(row: PodRow, spec: PodSpec, content: PodContent): PodPatch {
  return {
    ...content,
    generation: spec.generation,
    phase: 'pending',
    image_id: null,
    image_digest: null,
    container_id: null,
    reason: null,
    message: '',
    attempts: 0,
    port_conflicts: 0,
    next_retry_ms: null,
    reboots_done: row.reboots_requested,
  };
}
