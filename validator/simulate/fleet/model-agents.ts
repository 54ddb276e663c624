/**
 * Agents in memory, as the central API's port to agents. They run pods, lose them or stop answering as their owner sets.
 */
import type { z } from 'zod';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { SampleHistory, type SampleHistoryQuery } from '#shared/api/agent/metric-history.ts';
import { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import {
  type LogFrame,
  PodList,
  type PodPhase,
  type PodSpecInput,
  type PodView,
  sshKeysHash,
} from '#shared/api/agent/pod.ts';
import { VolumeList } from '#shared/api/agent/volumes.ts';
import type {
  CheckRequest,
  HealthReport,
  RewardQuery,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Agents } from '../../central/platform/ports.ts';
import { hostInventory } from './host-inventory.ts';
import { hotkey } from './model-keys.ts';
import { createModelLog, type ModelLog } from './model-log.ts';
import { createModelOperations, type ModelOperations } from './model-operations.ts';
import { createModelVolumes, type ModelVolumes } from './model-volumes.ts';

const FIRST_PORT = 31_000;
const NO_REBOOTS = { reboots_requested: 0, reboots_done: 0 };

export type ModelHost = {
  /** False: the agent answers no call. */
  up: boolean;
  /** False: the gateway does not respond either. Applies only while `up` is false. */
  gatewayUp: boolean;
  /** Phase in which a pod is right after the agent has accepted it. */
  arrives: PodPhase;
  /** True: a call takes effect, but its answer is lost. */
  losesAnswers: boolean;
  /** Thrown instead of accepting a pod. */
  refusal: ApiError | null;
  /** False: a deleted pod stays in the phase `removing`. */
  removesAtOnce: boolean;
  pods: Map<string, PodView>;
  specs: Map<string, PodSpecInput>;
  /** `put <id>`, `delete <id>`, `reboot <id> <n>`, in order. */
  calls: string[];
  inventory: Inventory;
  /** Null: an agent that does not have the route yet. */
  metrics: HostMetrics | null;
  /** Metrics by pod. A pod without an entry has not been measured. */
  podMetrics: Map<string, PodMetrics>;
  /** Answers requests for samples. Null: an agent that does not have the route yet. */
  sampleHistory: ((query: SampleHistoryQuery) => SampleHistory) | null;
  /** Number of requests for host or pod metrics. */
  metricsAsked: number;
  /** Token of each requested notebook server, by pod. */
  notebookTokens: Map<string, string>;
  /** Thrown instead of accepting a notebook server. */
  notebookRefusal: ApiError | null;
  /** Backups and restores. */
  operations: ModelOperations;
  /** Volumes. */
  volumes: ModelVolumes;
  /** Result of a requested check; null: not available. */
  report: HealthReport | null;
  /** Log of every pod. */
  log: ModelLog;
  /** Replaces the log for the next request only. */
  logFault: LogSource | null;
  /** Changes a pod's view. */
  change(podId: string, change: Partial<PodView>): void;
};

export type LogSource = () => AsyncGenerator<LogFrame>;

export type ModelAgents = Agents & {
  host(executorId: string): ModelHost;
  /** Number of pod listings so far, over all hosts. */
  listings(): number;
  /** Manually requested checks, oldest first. */
  wishes: CheckRequest[];
  /** Reward queries received, oldest first. */
  questions: RewardQuery[];
  /** Answer to reward queries; null: the query fails. */
  rewards: { shares: RewardShares | null };
  /** Records of the validator, by path without query. Others do not exist. */
  records: Map<string, unknown>;
};

/** Creates the agents. Every executor has an empty host that answers until `up` is set to false. */
export function createModelAgents(): ModelAgents & { useClock(clock: Clock): void } {
  const hosts = new Map<string, ModelHost>();
  let clock: Clock | null = null;
  let listings = 0;
  const wishes: CheckRequest[] = [];
  const questions: RewardQuery[] = [];
  const rewards: ModelAgents['rewards'] = { shares: null };
  const records: ModelAgents['records'] = new Map();

  function host(executorId: string): ModelHost {
    const known = hosts.get(executorId) ?? createHost(executorId);
    hosts.set(executorId, known);
    return known;
  }

  return {
    hotkey: hotkey(5),
    gateway: { host: '127.0.0.1', port: 8_090, hotkey: hotkey(6) },
    host,
    useClock(given) {
      clock = given;
    },
    listings: () => listings,
    wishes,
    questions,
    rewards,
    records,
    clientOf(executorId) {
      const client = clientOf(host(executorId), executorId, () => clock?.now() ?? 0);
      return {
        ...client,
        listPods() {
          listings += 1;
          return client.listPods();
        },
      };
    },
    async terminalOf() {
      throw new ApiError('upstream_unavailable', 'the modelled agent does not open terminals');
    },
    async checkNow(executorId, wish) {
      wishes.push(wish);
      const { report } = host(executorId);
      if (report === null)
        throw new ApiError('upstream_unavailable', 'the modelled validator does not respond');
      return report;
    },
    async signedDigest() {
      throw new ApiError('upstream_unavailable', 'the modelled validator has no signed digest');
    },
    async rewardShares(question) {
      questions.push(question);
      if (rewards.shares !== null) return rewards.shares;
      throw new ApiError('upstream_unavailable', 'the modelled validator does not respond');
    },
    async record(path, schema) {
      const record = records.get(path.split('?', 1)[0] ?? '');
      if (record !== undefined) return schema.parse(record);
      throw new ApiError('not_found', `the modelled validator has no record at ${path}`);
    },
  };
}

function createHost(executorId: string): ModelHost {
  const pods = new Map<string, PodView>();
  return {
    up: true,
    gatewayUp: true,
    arrives: 'running',
    losesAnswers: false,
    refusal: null,
    removesAtOnce: true,
    pods,
    specs: new Map(),
    calls: [],
    inventory: hostInventory(executorId),
    metrics: null,
    podMetrics: new Map(),
    sampleHistory: null,
    metricsAsked: 0,
    notebookTokens: new Map(),
    notebookRefusal: null,
    operations: createModelOperations(),
    volumes: createModelVolumes(),
    report: null,
    log: createModelLog(),
    logFault: null,
    change(podId, change) {
      const view = pods.get(podId);
      if (view === undefined) throw new Error(`the modelled host has no pod ${podId}`);
      pods.set(podId, { ...view, ...change });
    },
  };
}

function clientOf(host: ModelHost, executorId: string, nowMs: () => number): AgentClient {
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
          ...newView(id, executorId, spec, host.arrives, nowMs()),
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
      return fault === null ? host.log.open(query, signal) : fault();
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

function newView(
  id: string,
  executorId: string,
  spec: PodSpecInput,
  phase: PodPhase,
  nowMs: number,
): PodView {
  const ports = (spec.internal_ports ?? []).map((port, index) => [port, FIRST_PORT + index]);
  return {
    id,
    executor_id: executorId,
    desired: 'running',
    stopped: false,
    phase,
    phase_since_ms: nowMs,
    generation: spec.generation,
    observed_generation: spec.generation,
    change: null,
    reboots_requested: 0,
    reboots_done: 0,
    reason: null,
    message: '',
    conditions: [],
    container_id: null,
    image:
      'dockerfile' in spec.image
        ? { reference: 'dockerfile', digest: null }
        : { reference: spec.image.reference, digest: spec.image.digest ?? null },
    pull: null,
    last_pull: null,
    ports: Object.fromEntries(ports),
    ssh: null,
    ssh_keys_hash: sshKeysHash(spec.ssh_public_keys ?? []),
    notebook: null,
    gpu_uuids: spec.gpu_uuids ?? [],
    simulated: true,
    restart_count: 0,
    launched: true,
    next_retry_ms: null,
    last_exit: null,
    created_ms: nowMs,
    updated_ms: nowMs,
    remove_after_seconds: spec.remove_after_seconds ?? null,
  };
}
