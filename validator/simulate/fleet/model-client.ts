/** The client of a modelled agent, as the central API and the validator call it. */
import type { z } from 'zod';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { SampleHistory } from '#shared/api/agent/metric-history.ts';
import { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import { PodList, type PodView, sshKeysHash } from '#shared/api/agent/pod.ts';
import { VolumeList } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type ModelHost, newPodView } from './model-host.ts';

const NO_REBOOTS = { reboots_requested: 0, reboots_done: 0 };

export function modelClient(host: ModelHost, executorId: string, nowMs: () => number): AgentClient {
  /** Runs `effect` as a real agent would, then answers or loses the answer. */
  async function reach<T>(effect: () => T): Promise<T> {
    if (!host.up) throw silent(host);
    const answer = effect();
    if (host.losesAnswers) throw silent(host);
    return answer;
  }

  function known(podId: string): PodView {
    const view = host.pods.get(podId);
    if (view === undefined) throw new ApiError('pod_not_found', `no pod ${podId}`);
    return view;
  }

  return {
    inventory: () => reach(() => wired(Inventory, host.inventory)),
    hostMetrics: () => {
      host.metricsAsked += 1;
      return reach(() => {
        if (host.metrics === null) throw new ApiError('not_found', 'no such route');
        return wired(HostMetrics, host.metrics);
      });
    },
    podMetrics: (id) => {
      host.metricsAsked += 1;
      return reach(() => wired(PodMetrics, host.podMetrics.get(id) ?? unmeasured(known(id))));
    },
    sampleHistory: (query) =>
      reach(() => {
        if (host.sampleHistory === null) throw new ApiError('not_found', 'no such route');
        return wired(SampleHistory, host.sampleHistory(query));
      }),
    async listPods() {
      // A listing changes nothing, so `losesAnswers` does not apply to it.
      if (!host.up) throw silent(host);
      return wired(PodList, { pods: [...host.pods.values()] }).pods;
    },
    getPod: (id) => reach(() => known(id)),
    putPod: (id, spec) =>
      reach(() => {
        host.calls.push(`put ${id}`);
        if (host.refusal !== null) throw host.refusal;
        const present = host.pods.get(id);
        if (present !== undefined && present.generation >= spec.generation) return present;
        const { reboots_requested, reboots_done } = present ?? NO_REBOOTS;
        const view = {
          ...newPodView(id, executorId, spec, host.arrives, nowMs()),
          reboots_requested,
          reboots_done,
        };
        host.pods.set(id, view);
        host.specs.set(id, spec);
        return view;
      }),
    deletePod: (id) =>
      reach(() => {
        host.calls.push(`delete ${id}`);
        known(id);
        host.change(id, {
          desired: 'removed',
          phase: host.removesAtOnce ? 'removed' : 'removing',
        });
        const view = known(id);
        if (host.removesAtOnce) host.pods.delete(id);
        return view;
      }),
    rebootPod: (id, reboot) =>
      reach(() => {
        host.calls.push(`reboot ${id} ${reboot}`);
        if (known(id).reboots_requested < reboot) {
          host.change(id, { reboots_requested: reboot, phase: 'rebooting' });
        }
        return known(id);
      }),
    putSshKeys: (id, keys) =>
      reach(() => {
        host.calls.push(`ssh-keys ${id}`);
        known(id);
        host.change(id, { ssh_keys_hash: sshKeysHash(keys) });
        return known(id);
      }),
    setStopped: (id, stopped) =>
      reach(() => {
        host.calls.push(`${stopped ? 'stop' : 'start'} ${id}`);
        known(id);
        host.change(id, { stopped });
        return known(id);
      }),
    postNotebook: (id, { request, internal_port, token }) =>
      reach(() => {
        if (host.notebookRefusal !== null) throw host.notebookRefusal;
        host.notebookTokens.set(id, token);
        host.calls.push(`notebook ${id} ${internal_port} ${request}`);
        const resting = { step: null, reason: null, message: '', path: null, since_ms: nowMs() };
        host.change(id, {
          notebook: { request, internal_port, status: 'installing', ...resting },
        });
        return known(id);
      }),
    postBackup: (id, request) =>
      reach(() => {
        known(id);
        return host.operations.begin('backup', id, request, nowMs());
      }),
    postRestore: (id, request) =>
      reach(() => {
        known(id);
        return host.operations.begin('restore', id, request, nowMs());
      }),
    restoreTarget: (id, path) =>
      reach(() => {
        known(id);
        return { state: host.operations.occupied.has(path) ? 'occupied' : 'absent' };
      }),
    postDrill: (id, request) => reach(() => host.operations.begin('verify', id, request, nowMs())),
    async listVolumes() {
      if (!host.up) throw silent(host);
      return wired(VolumeList, { volumes: [...host.volumes.views.values()] }).volumes;
    },
    putVolume: (id, request) => reach(() => host.volumes.put(id, request)),
    deleteVolume: (id) => reach(() => host.volumes.remove(id)),
    postVolumeBackup: (id, request) =>
      reach(() => {
        host.volumes.get(id);
        return host.operations.begin('backup', id, request, nowMs());
      }),
    postVolumeRestore: (id, request) =>
      reach(() => {
        host.volumes.get(id);
        return host.operations.begin('restore', id, request, nowMs());
      }),
    getOperation: (id) => reach(() => host.operations.get(id)),
    cancelOperation: (id) => reach(() => host.operations.cancel(id, nowMs())),
    verify: () => Promise.reject(new Error('the modelled agent does not run probes')),
    checkPorts: () => Promise.reject(new Error('the modelled agent does not check ports')),
    checkImages: () => Promise.reject(new Error('the modelled agent does not check images')),
    checkEgress: () => Promise.reject(new Error('the modelled agent does not query registries')),
    challenge: () => Promise.reject(new Error('the modelled agent does not answer challenges')),
    openChallenge: () => Promise.reject(new Error('the modelled agent does not answer challenges')),
    async podLogs(id, query, signal) {
      host.log.queries.push(query);
      if (!host.up) throw silent(host);
      known(id);
      if (!isPlace(query.since)) throw new ApiError('validation_error', 'not a position in a log');
      const fault = host.logFault;
      host.logFault = null;
      if (fault !== null) return fault();
      return (host.podLogs.get(id) ?? host.log).open(query, signal);
    },
  };
}

/** Parses the answer as the wire would: a malformed one counts as no answer. */
function wired<T>(schema: z.ZodType<T>, answer: T): T {
  const parsed = schema.safeParse(answer);
  if (!parsed.success) throw silent({ gatewayUp: true });
  return parsed.data;
}

/** Returns true if a log position is absent, a time in milliseconds, or has the form of a frame id. */
function isPlace(since: string | undefined): boolean {
  return since === undefined || /^(?:\d{1,15}|\w+\.\d+\.\d+)$/.test(since);
}

function unmeasured({ simulated }: PodView): PodMetrics {
  return {
    simulated,
    age_ms: null,
    interval_seconds: 10,
    gpus: [],
    history: [],
    idle_ms: null,
    cpu: { used_cores: null, limit_cores: 1 },
    memory: { used_bytes: null, limit_bytes: 2 ** 30 },
  };
}

/** Returns the error for an agent that does not answer: with the gateway's status 502, or without a response. */
function silent({ gatewayUp }: Pick<ModelHost, 'gatewayUp'>): ApiError {
  const response = gatewayUp ? { status: 502 } : {};
  return new ApiError('upstream_unavailable', 'the modelled agent does not respond', response);
}
