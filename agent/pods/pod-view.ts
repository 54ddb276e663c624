/** Converts a pod's row to the wire format. Pure. */

import type { FinishedPull, PullProgress } from '#shared/api/agent/images.ts';
import type { NotebookView } from '#shared/api/agent/notebook.ts';
import type { PodCondition, PodSpec, PodView } from '#shared/api/agent/pod.ts';
import type { PodRow } from './pod.store.ts';
import { changeOf, newestOf } from './pod-generations.ts';
import { conditionsOf, lastExitOf, type PortMapping, servedPorts, specOf } from './pod-row.ts';
import type { SshView } from './pod-ssh.ts';

/** Image reference shown for a pod that is built from a Dockerfile. */
const DOCKERFILE = 'dockerfile';

export type ViewFacts = {
  executorId: string;
  /** Leased ports. Ports that only another generation uses are not in the view. */
  ports: readonly PortMapping[];
  gpuUuids: readonly string[];
  simulated: boolean;
  pull: PullProgress | null;
  lastPull: FinishedPull | null;
  /** Error of the engine while it does not answer; otherwise null. */
  engineAway: string | null;
  /** Null if the pod's disk use is not measured. */
  disk: PodCondition | null;
  /** Null for a pod without real GPUs. */
  gpuHealth: PodCondition | null;
  ssh: SshView;
  notebook: NotebookView | null;
};

/** Returns the view of a pod. While the engine is unavailable, it shows the last known phase. */
export function podView(row: PodRow, facts: ViewFacts): PodView {
  const away = facts.engineAway !== null && row.phase !== 'removed' && row.reason === null;
  const spec = specOf(row);
  const ports = servedPorts(row, facts.ports);
  const fetching = row.phase === 'pulling' || row.staged_json !== null;
  return {
    id: row.id,
    executor_id: facts.executorId,
    desired: row.desired,
    stopped: row.stopped === 1,
    phase: row.phase,
    phase_since_ms: row.phase_since_ms,
    generation: newestOf(row).generation,
    observed_generation: row.observed_generation,
    change: changeOf(row),
    reboots_requested: row.reboots_requested,
    reboots_done: row.reboots_done,
    reason: away ? 'DockerUnavailable' : row.reason,
    message: away ? `The Docker engine does not answer (${facts.engineAway})` : row.message,
    conditions: [
      ...conditionsOf(row).map((condition) =>
        away && condition.type === 'Running'
          ? {
              ...condition,
              reason: 'DockerUnavailable',
              message: 'Last known status; Docker does not answer',
            }
          : condition,
      ),
      ...[facts.disk, facts.gpuHealth, facts.ssh.condition].filter(
        (condition) => condition !== null,
      ),
    ],
    container_id: row.container_id,
    image: imageView(spec, row),
    pull: fetching ? facts.pull : null,
    last_pull: facts.lastPull,
    ports: Object.fromEntries(ports.map(({ internal, host }) => [String(internal), host])),
    ssh: facts.ssh.ssh,
    ssh_keys_hash: facts.ssh.ssh_keys_hash,
    notebook: facts.notebook,
    gpu_uuids: facts.gpuUuids.filter((uuid) => spec.gpu_uuids.includes(uuid)),
    simulated: facts.simulated,
    restart_count: row.restart_count,
    launched: row.launched === 1,
    next_retry_ms: row.next_retry_ms,
    last_exit: lastExitOf(row),
    remove_after_seconds: spec.remove_after_seconds ?? null,
    created_ms: row.created_ms,
    updated_ms: row.updated_ms,
  };
}

function imageView({ image }: PodSpec, row: PodRow): PodView['image'] {
  return 'dockerfile' in image
    ? { reference: DOCKERFILE, digest: null }
    : { reference: image.reference, digest: row.image_digest ?? image.digest ?? null };
}
