/**
 * Requests about pods: put, get, list, remove, reboot, stop, SSH keys. The desired state is durable before the response
 * is sent.
 */

import type { RegistryAuth } from '#shared/api/agent/images.ts';
import type { NotebookView } from '#shared/api/agent/notebook.ts';
import type { PodCondition, PodPut, PodSpec, PodVerdict, PodView } from '#shared/api/agent/pod.ts';
import type { PodSecret } from '#shared/api/agent/pod-secrets.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { RegistryLogins } from '../containers/images/registry-logins.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import { PortPoolExhausted, type PortService } from '../leases/port.service.ts';
import { checkLogin, checkPolicy, type HostLimits, refusalsOf, specRefused } from './admission.ts';
import type { GpuMode } from './container-spec.ts';
import type { LostPods } from './lost-pods.ts';
import { REBOOTABLE_PHASES } from './pod.state.ts';
import type { PodRow } from './pod.store.ts';
import { mustStage, newestOf, stagePatch } from './pod-generations.ts';
import type { PodPulls } from './pod-pulls.ts';
import type { PodPatch, PodRecords } from './pod-records.ts';
import { launchPatch, newPodRow, ownSshdPortOf, type PodContent, specHash } from './pod-row.ts';
import type { PodSecretsService } from './pod-secrets.ts';
import type { PodSsh } from './pod-ssh.ts';
import { podView } from './pod-view.ts';
import type { PodSupervisor } from './pod-worker.ts';
import type { Refusal } from './provider-policy.ts';

export type PodService = ReturnType<typeof createPodService>;

/** Limit of live pods on one host. */
const MAX_PODS = 1_000;
const CORRUPT_HINT = 'DELETE the pod: its remaining objects are removed and its leases are freed.';

/** Methods return the pod's view and throw ApiError. */
export function createPodService(deps: {
  executorId: string;
  records: PodRecords;
  ports: PortService;
  gpuLeases: GpuLeases;
  gpuMode(): GpuMode;
  supervisor: PodSupervisor;
  lost: LostPods;
  /** Rejects while the ports of pods that the store has lost are unknown. */
  requireSeeded(): Promise<void>;
  clock: Clock;
  host: HostLimits;
  pulls: Pick<PodPulls, 'presentOf' | 'lastOf'>;
  engineAway(): string | null;
  diskOf(podId: string): PodCondition | null;
  gpuHealthOf(podId: string): PodCondition | null;
  ssh: PodSsh;
  logins: Pick<RegistryLogins, 'keep' | 'drop'>;
  secrets: Pick<PodSecretsService, 'check' | 'keep' | 'drop'>;
  notebookOf(podId: string): NotebookView | null;
}) {
  const { executorId, records, ports, gpuLeases, supervisor, clock } = deps;

  function viewOf(row: PodRow): PodView {
    return podView(row, {
      executorId,
      ports: ports.portsOf(row.id),
      gpuUuids: gpuLeases.uuidsOf(row.id),
      simulated: deps.gpuMode() === 'simulated',
      pull: deps.pulls.presentOf(row.id),
      lastPull: deps.pulls.lastOf(row.id),
      engineAway: deps.engineAway(),
      disk: deps.diskOf(row.id),
      gpuHealth: deps.gpuHealthOf(row.id),
      ssh: deps.ssh.viewOf(row),
      notebook: deps.notebookOf(row.id),
    });
  }

  function find(id: string): PodRow {
    const row = records.get(id);
    if (row === null) throw missing(id);
    return row;
  }

  function missing(id: string): ApiError {
    return records.isCorrupt(id)
      ? new ApiError('internal_error', 'The record of this pod is corrupt', { hint: CORRUPT_HINT })
      : new ApiError('pod_not_found', 'There is no such pod on this host');
  }

  /** Refusal if the provider's limit of pods is reached. */
  function podLimitRefusal(): Refusal | null {
    const limit = deps.host.policy.max_pods;
    if (limit === undefined || records.countLive() < limit) return null;
    return { field: 'pods', rule: 'max_pods', message: `no more than ${limit} on this host` };
  }

  /** Writes the row and its leases in one transaction, so that a refusal leaves nothing behind. */
  function admit(
    id: string,
    spec: PodSpec,
    { auth, secrets }: { auth: RegistryAuth | undefined; secrets: readonly PodSecret[] },
  ): PodRow {
    const content = { spec_json: JSON.stringify(spec), spec_hash: specHash(spec) };
    return records.transaction(() => {
      const present = records.get(id);
      if (present !== null && isRepeat(present, spec.generation, content.spec_hash)) return present;
      if (present === null && records.isCorrupt(id)) throw missing(id);
      if (present === null && records.countLive() >= MAX_PODS) {
        throw new ApiError('conflict', `This host takes no more than ${MAX_PODS} pods`);
      }
      const crowded = present === null ? podLimitRefusal() : null;
      if (crowded !== null) throw specRefused(crowded);
      const now = clock.now();
      const row =
        present === null
          ? records.insert(newPodRow(id, spec.generation, content, now))
          : records.apply(id, (old) => newerGeneration(old, spec, content));
      if (row === null) throw new Error('the pod vanished inside a transaction');
      deps.ssh.admit(id);
      if (auth !== undefined) deps.logins.keep(id, spec.generation, auth);
      deps.secrets.keep(id, secrets);
      // SSH keys take effect at once, also those of a generation that is only staged.
      if (row.generation !== spec.generation) deps.ssh.setKeys(row, spec.ssh_public_keys);
      gpuLeases.lease(id, spec.gpu_uuids);
      leasePorts(id, spec);
      return row;
    });
  }

  /** Handles a repeated request, which changes only the registry login for the next pull. */
  function repeated(row: PodRow, spec: PodSpec, auth: RegistryAuth | undefined): PodView {
    if (auth === undefined || row.desired === 'removed') return viewOf(row);
    checkLogin(spec, auth);
    records.transaction(() => deps.logins.keep(row.id, spec.generation, auth));
    supervisor.wake(row.id);
    return viewOf(row);
  }

  function leasePorts(id: string, spec: PodSpec): void {
    try {
      ports.lease(id, spec.internal_ports, ownSshdPortOf(spec));
    } catch (cause) {
      if (!(cause instanceof PortPoolExhausted)) throw cause;
      throw new ApiError('conflict', `PortPoolExhausted: ${cause.message}`, {
        hint: 'Request fewer ports or choose another node.',
        cause,
      });
    }
  }

  return {
    /** Creates or changes a pod. Idempotent by generation and content. */
    async put(
      id: string,
      { registry_auth: auth, secrets = [], ...spec }: PodPut,
    ): Promise<PodView> {
      const present = records.get(id);
      const repeat = present !== null && isRepeat(present, spec.generation, specHash(spec));
      if (repeat) return repeated(present, spec, auth);
      await deps.requireSeeded();
      checkPolicy(spec, deps.host);
      if (auth !== undefined) checkLogin(spec, auth);
      deps.secrets.check(id, spec.secret_names, secrets);
      await gpuLeases.checkAdmissible(id, spec.gpu_uuids);
      const row = admit(id, spec, { auth, secrets });
      supervisor.interrupt(id);
      return viewOf(row);
    },
    /** Checks the spec of a new pod without storing, leasing or launching anything. */
    explain(spec: PodSpec): PodVerdict {
      const crowded = podLimitRefusal();
      const refusals = [...refusalsOf(spec, deps.host), ...(crowded === null ? [] : [crowded])];
      return { accepted: refusals.length === 0, refusals };
    },
    get: (id: string): PodView => viewOf(find(id)),
    /** Pods that are not removed, oldest first. */
    list: (): PodView[] => records.live().map(viewOf),
    /** The last transitions of a pod, oldest first. */
    events: (id: string) => records.events(find(id).id),
    /** Begins the removal, also of a pod whose row is lost. Idempotent. */
    async remove(id: string): Promise<PodView> {
      const row = records.get(id) ?? (await deps.lost.beginRemoval(id));
      if (row === null) throw missing(id);
      if (row.desired === 'removed') {
        supervisor.wake(id);
        return viewOf(row);
      }
      const fresh = { reason: null, message: '', attempts: 0, next_retry_ms: null };
      const going = records.transaction(() => {
        deps.logins.drop(id);
        deps.secrets.drop(id);
        return records.apply(id, () => ({ ...fresh, desired: 'removed', phase: 'removing' }));
      });
      supervisor.interrupt(id);
      return viewOf(going ?? row);
    },
    /** Replaces the SSH keys. They apply to new logins at once; sessions of removed keys end. Idempotent. */
    putSshKeys(id: string, keys: readonly string[]): PodView {
      const row = find(id);
      if (row.desired === 'removed') {
        throw new ApiError('pod_state_conflict', 'This pod is being removed');
      }
      deps.ssh.setKeys(row, keys);
      deps.ssh.publish();
      return viewOf(row);
    },
    /** Stops the container and keeps it with its data, or starts it again. Idempotent. */
    setStopped(id: string, stopped: boolean): PodView {
      const row = find(id);
      if (row.desired === 'removed') {
        throw new ApiError('pod_state_conflict', 'This pod is being removed');
      }
      const wanted = records.change(id, () => ({ stopped: stopped ? 1 : 0 }));
      supervisor.interrupt(id);
      return viewOf(wanted ?? row);
    },
    /** `count` is the number of reboots requested so far, including this one, so that a repeat does not reboot twice. */
    reboot(id: string, count: number): PodView {
      const row = find(id);
      if (count <= row.reboots_requested) return viewOf(row);
      if (count > row.reboots_requested + 1) {
        throw new ApiError('conflict', `The next reboot is number ${row.reboots_requested + 1}`);
      }
      if (!REBOOTABLE_PHASES.includes(row.phase)) {
        throw new ApiError('pod_state_conflict', `A pod that is ${row.phase} cannot be rebooted`);
      }
      // A change in progress restarts the pod anyway, so the reboot counts as done.
      const completed = row.fallback_json === null ? {} : { reboots_done: count };
      const wanted = records.change(id, () => ({ reboots_requested: count, ...completed }));
      supervisor.wake(id);
      return viewOf(wanted ?? row);
    },
  };
}

/** True if there is nothing to change. Throws if the request contradicts the stored generation. */
function isRepeat(row: PodRow, generation: number, hash: string): boolean {
  const newest = newestOf(row);
  if (newest.generation === generation && newest.spec_hash === hash) return true;
  if (row.desired === 'removed') {
    throw new ApiError('conflict', 'This pod was removed; its id cannot be used again');
  }
  if (generation > newest.generation) return false;
  const message =
    generation < newest.generation
      ? `Generation ${newest.generation} is stored, which is newer`
      : `Generation ${generation} is stored with other content`;
  throw new ApiError('conflict', message);
}

/** Stages the generation if a container exists, otherwise replaces the pod's content at once. */
function newerGeneration(row: PodRow, spec: PodSpec, content: PodContent): PodPatch {
  const { generation } = spec;
  if (mustStage(row)) return stagePatch(generation, content);
  const next = { ...content, generation, image_id: null, image_digest: null };
  return { ...launchPatch(row, next), refused_json: null };
}
