/** State of a modelled host: its pods, volumes, operations, metrics and log, which its owner changes at any time. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { SampleHistory, SampleHistoryQuery } from '#shared/api/agent/metric-history.ts';
import type { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import {
  type LogFrame,
  type PodPhase,
  type PodSpecInput,
  type PodView,
  sshKeysHash,
} from '#shared/api/agent/pod.ts';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { ApiError } from '#shared/runtime/errors.ts';
import { hostInventory } from './host-inventory.ts';
import { createModelLog, type ModelLog } from './model-log.ts';
import { createModelOperations, type ModelOperations } from './model-operations.ts';
import { createModelVolumes, type ModelVolumes } from './model-volumes.ts';

const FIRST_PORT = 31_000;

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
  /** Log of every pod without an entry in `podLogs`. */
  log: ModelLog;
  podLogs: Map<string, ModelLog>;
  /** Replaces the log for the next request only. */
  logFault: LogSource | null;
  /** Changes a pod's view. */
  change(podId: string, change: Partial<PodView>): void;
};

export type LogSource = () => AsyncGenerator<LogFrame>;

/** Creates an empty host that answers. */
export function createModelHost(executorId: string): ModelHost {
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
    podLogs: new Map(),
    logFault: null,
    change(podId, change) {
      const view = pods.get(podId);
      if (view === undefined) throw new Error(`the modelled host has no pod ${podId}`);
      pods.set(podId, { ...view, ...change });
    },
  };
}

/** Returns the view of a pod right after the agent has accepted it. */
export function newPodView(
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
