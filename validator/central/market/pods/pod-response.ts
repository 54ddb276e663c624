/** Converts a pod to its form in API responses. Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Pod } from '../../platform/database/tables.ts';
import type { ExecutorEntry } from '../executors/executor.service.ts';
import {
  gpuTotalOf,
  huidOf,
  locationOf,
  machineNameOf,
  measuredInventoryOf,
  uptimeMinutesOf,
} from '../executors/executor-response.ts';
import { noticeOf } from '../executors/notice-period.ts';
import { specsOf } from '../executors/specs.ts';
import type { VolumeResponse } from '../volumes/volume.schemas.ts';
import type { PodListItemResponse, PodTemplate } from './pod.schemas.ts';
import {
  CREATION_STATES,
  podStateOf,
  WIRE_PHASES,
  type WirePhase,
  type WireStatus,
  wireStatus,
} from './pod.state.ts';
import { keyOnWire, podKeysOf } from './pod-key.ts';
import { notebookUrl } from './pod-notebook.ts';

const SSH_PORT = '22';
const DEFAULT_SSH_PORT = 22;
const KIB = 1024;
const MS_PER_SECOND = 1_000;

export function statusOf(pod: Pod): WireStatus {
  return wireStatus(podStateOf(pod.state));
}

/**
 * `notebookToken` opens the pod's notebook server; `volume` is mounted at /mnt; `spentUusd` is the amount that the
 * renter paid so far.
 */
export function podResponse(
  pod: Pod,
  executor: ExecutorEntry,
  nowMs: number,
  notebookToken: string,
  volume: VolumeResponse | null,
  spentUusd: number,
): PodListItemResponse {
  const status = statusOf(pod);
  const ports = JSON.parse(pod.ports_json) as Record<string, number>;
  const spec = JSON.parse(pod.spec_json) as PodSpecInput;
  const inventory = measuredInventoryOf(executor);
  return {
    id: pod.id,
    pod_name: pod.pod_name,
    status,
    ssh_connect_cmd: sshCommand(status, executor.ip_address, ports),
    ssh_host_key: pod.ssh_host_key,
    known_hosts: knownHosts(pod.ssh_host_key, executor.ip_address, ports),
    ports_mapping: ports,
    gpu_name: machineNameOf(executor),
    gpu_count: String(pod.gpu_count),
    cpu_name: inventory.cpu.model,
    cpu_count: Math.max(1, Math.floor(spec.limits.cpu_cores)),
    ram_total: Math.floor(spec.limits.memory_bytes / KIB),
    price: microToUsd(pod.price_uusd_per_gpu_hour * pod.gpu_count),
    created_at: naiveUtc(pod.created_at),
    updated_at: naiveUtc(pod.updated_at),
    removal_scheduled_at: pod.removal_at === null ? null : naiveUtc(pod.removal_at),
    termination_hours: pod.termination_hours,
    jupyter_installation_status: pod.jupyter_status,
    jupyter_url: notebookUrl(pod, executor.ip_address, notebookToken),
    enable_jupyter: pod.enable_jupyter === 1,
    jupyter_error: pod.jupyter_error,
    is_favorite: pod.is_favorite === 1,
    template: JSON.parse(pod.template_json) as PodTemplate,
    executor: executorOf(pod, executor, { inventory, gpuUuids: spec.gpu_uuids ?? [], nowMs }),
    executor_id: pod.executor_id,
    template_id: pod.template_id === '' ? null : pod.template_id,
    user_id: pod.account_id,
    volume,
    ssh_keys: podKeysOf(pod).map(keyOnWire),
    notice_period: noticeOf(executor),
    source: pod.source,
    client_version: pod.client_version,
    created_by_api_key_id: pod.created_by_api_key_id,
    skip_add_agent_ssh_key: false,
    phase: phaseOf(pod),
    ...readinessOf(pod, nowMs),
    workspace_id: null,
    cluster_id: null,
    cluster_name: null,
    enable_volume_encryption: pod.enable_volume_encryption === 1,
    volume_encryption_status: null,
    reason_code: pod.reason_code,
    message: pod.message === '' ? null : pod.message,
    max_spend_usd: pod.max_spend_uusd === null ? null : microToUsd(pod.max_spend_uusd),
    idle_shutdown_minutes: pod.idle_shutdown_minutes,
    spent_usd: microToUsd(spentUusd),
  };
}

/** Returns the command in exactly the form that clients parse; null until the pod runs and its SSH port is mapped. */
export function sshCommand(
  status: WireStatus,
  host: string,
  ports: Readonly<Record<string, number>>,
): string | null {
  const port = ports[SSH_PORT];
  return status === 'RUNNING' && port !== undefined ? `ssh root@${host} -p ${port}` : null;
}

/** Returns a line for a known_hosts file; null for a pod that is not served by the node's SSH gateway. */
function knownHosts(
  hostKey: string | null,
  host: string,
  ports: Readonly<Record<string, number>>,
): string | null {
  const port = ports[SSH_PORT];
  if (hostKey === null || port === undefined) return null;
  return `${port === DEFAULT_SSH_PORT ? host : `[${host}]:${port}`} ${hostKey}`;
}

function phaseOf(pod: Pod): WirePhase | null {
  return WIRE_PHASES.find((known) => known === pod.phase) ?? null;
}

/**
 * Returns the expected time at which the pod runs. Members are null unless the pod is being created. An overdue pod is
 * expected in one second. Restores have no estimate.
 */
function readinessOf(
  { state, ready_expected_at: atMs, eta_basis }: Pod,
  nowMs: number,
): Pick<PodListItemResponse, 'estimated_ready_seconds' | 'eta_basis'> {
  const isComing = state !== 'restoring' && CREATION_STATES.some((known) => known === state);
  if (!isComing || atMs === null) return { estimated_ready_seconds: null, eta_basis: null };
  const seconds = Math.max(1, Math.ceil((atMs - nowMs) / MS_PER_SECOND));
  return { estimated_ready_seconds: seconds, eta_basis };
}

function executorOf(
  pod: Pod,
  executor: ExecutorEntry,
  {
    inventory,
    gpuUuids,
    nowMs,
  }: { inventory: Inventory; gpuUuids: readonly string[]; nowMs: number },
): PodListItemResponse['executor'] {
  return {
    id: executor.id,
    huid: huidOf(executor.id),
    machine_name: machineNameOf(executor),
    price_per_gpu: microToUsd(pod.price_uusd_per_gpu_hour),
    price_per_hour: microToUsd(pod.price_uusd_per_gpu_hour * gpuTotalOf(executor)),
    executor_ip_address: executor.ip_address,
    validator_hotkey: executor.validator_hotkey,
    gpu_count: gpuTotalOf(executor),
    specs: specsOf(inventory, executor, gpuUuids),
    active: executor.state === 'verified',
    location: locationOf(executor),
    uptime_in_minutes: uptimeMinutesOf(executor, nowMs),
    simulated: executor.simulated === 1,
  };
}
