/** Builds the row of a pod when the pod is rented. */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import type { Db, Template } from '../../platform/database/tables.ts';
import type { ExecutorEntry } from '../executors/executor.service.ts';
import { imageKeyOf } from '../executors/launch-estimate.ts';
import { templateResponse } from '../templates/template.service.ts';
import { expectationAtRent } from './launch-eta.ts';
import { launchFrom } from './launch-limit.ts';
import { wirePhase } from './pod.state.ts';
import type { NewPod } from './pod.store.ts';
import type { PodKey } from './pod-key.ts';
import { notebookColumns } from './pod-notebook.ts';

type RentedColumns = Pick<
  NewPod,
  | 'id'
  | 'template_id'
  | 'account_id'
  | 'pod_name'
  | 'gpu_count'
  | 'hold_id'
  | 'removal_at'
  | 'termination_hours'
  | 'max_spend_uusd'
  | 'idle_shutdown_minutes'
  | 'enable_volume_encryption'
  | 'source'
  | 'client_version'
  | 'created_by_api_key_id'
>;

export type NewPodParts = {
  executor: ExecutorEntry;
  template: Template;
  keys: readonly PodKey[];
  spec: PodSpecInput;
  /** If null, the pod starts no notebook server. */
  notebookPort: number | null;
  nowMs: number;
  launchLimitMs: number;
  /** Columns whose values come from the request and its caller. */
  columns: RentedColumns;
};

/** Returns the row; the caller inserts it. The launch starts now, at the present price of the node. */
export async function newPod(tx: Db, parts: NewPodParts): Promise<NewPod> {
  const { executor, template, keys, spec, notebookPort, nowMs, launchLimitMs, columns } = parts;
  return {
    ...columns,
    ...launchFrom(nowMs, launchLimitMs),
    ...notebookColumns(notebookPort),
    ...(await expectationAtRent(tx, executor.id, { image: spec.image, template, nowMs })),
    executor_id: executor.id,
    docker_credential_id: template.docker_credential_id,
    template_json: JSON.stringify(templateResponse(template)),
    template_tried_at: null,
    previous_json: null,
    price_uusd_per_gpu_hour: executor.price_uusd_per_gpu_hour,
    spec_json: JSON.stringify(spec),
    image_key: imageKeyOf(spec.image),
    state: 'pending',
    phase: wirePhase('pending') ?? '',
    reason_code: null,
    message: '',
    generation: 1,
    acknowledged_generation: 0,
    reboots_requested: 0,
    reboots_acknowledged: 0,
    ports_json: '{}',
    ssh_host_key: null,
    ssh_keys_json: JSON.stringify(keys),
    is_favorite: 0,
    idle_from: null,
    idle_stop_at: null,
    idle_until: null,
    first_running_at: null,
    seen_at: null,
    healthy_at: null,
    delete_requested_at: null,
    ended_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}
