/** A pod's row as the wire shows it. Pure. */
import type { PodCondition, PodView, PullProgress } from '#shared/agent-api/pod.ts';
import type { SshView } from '../ssh/ssh.service.ts';
import type { PodRow } from '../store/pod.store.ts';
import { conditionsOf, lastExitOf, type PortMapping, specOf } from './pod.record.ts';

export type ViewFacts = {
  executorId: string;
  ports: readonly PortMapping[];
  gpuUuids: readonly string[];
  simulated: boolean;
  pull: PullProgress | null;
  /** Why the engine does not answer; null while it does. */
  engineAway: string | null;
  /** How full its disk is, where that is measured. */
  disk: PodCondition | null;
  ssh: SshView;
};

/** While the engine is away the phase is the last one known: nothing is declared dead. */
export function podView(row: PodRow, facts: ViewFacts): PodView {
  const away = facts.engineAway !== null && row.phase !== 'removed' && row.reason === null;
  const { reference, digest } = specOf(row).image;
  return {
    id: row.id,
    executor_id: facts.executorId,
    desired: row.desired,
    phase: row.phase,
    phase_since_ms: row.phase_since_ms,
    generation: row.generation,
    observed_generation: row.observed_generation,
    reboots_requested: row.reboots_requested,
    reboots_done: row.reboots_done,
    reason: away ? 'DockerUnavailable' : row.reason,
    message: away ? `The Docker engine does not answer (${facts.engineAway})` : row.message,
    conditions: [
      ...conditionsOf(row).map((condition) =>
        away && condition.type === 'Running'
          ? { ...condition, reason: 'DockerUnavailable', message: 'Last known; Docker is away' }
          : condition,
      ),
      ...[facts.disk, facts.ssh.condition].filter((condition) => condition !== null),
    ],
    container_id: row.container_id,
    image: { reference, digest: row.image_digest ?? digest ?? null },
    pull: row.phase === 'pulling' ? facts.pull : null,
    ports: Object.fromEntries(facts.ports.map(({ internal, host }) => [String(internal), host])),
    ssh: facts.ssh.ssh,
    ssh_keys_hash: facts.ssh.ssh_keys_hash,
    gpu_uuids: [...facts.gpuUuids],
    simulated: facts.simulated,
    restart_count: row.restart_count,
    next_retry_ms: row.next_retry_ms,
    last_exit: lastExitOf(row),
    created_ms: row.created_ms,
    updated_ms: row.updated_ms,
  };
}
