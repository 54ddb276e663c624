/** Executes the steps of a plan. Each step may be interrupted anywhere and run again. */
import type { ContainerState } from '../containers/engine/engine.ts';
import { afterExit, afterFailure } from './backoff.ts';
import { createChangeSteps } from './change-steps.ts';
import { createLaunch } from './launch-steps.ts';
import type { Step } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import { specOf } from './pod-row.ts';
import {
  createCommit,
  LAUNCH_STAGES,
  type Outcome,
  outcomeOf,
  RELIST,
  runningPatch,
  type StepPorts,
} from './step-ports.ts';

type Action = Exclude<Step, { kind: 'wait' }>;

export type PodSteps = ReturnType<typeof createPodSteps>;

const LOST = 'The container was removed by something other than the agent';

export function createPodSteps(deps: StepPorts) {
  const { engine, records, ports, gpuLeases, networks, volumes, clock, random } = deps;
  const commit = createCommit(records);
  const { pull, create, start, rejoinNetwork } = createLaunch(deps, commit);
  const change = createChangeSteps(deps, commit);

  async function removeContainers(
    row: PodRow,
    containers: readonly ContainerState[],
  ): Promise<Outcome> {
    if (row.desired === 'running' && containers.some(({ id }) => id === row.container_id)) {
      const phase = row.phase === 'creating' ? 'creating' : 'pending';
      commit(row, () => ({ phase, container_id: null }));
    }
    const grace = specOf(row).stop_grace_seconds;
    for (const container of containers) {
      if (container.status === 'running') await engine.stopContainer(container.id, grace);
      await engine.removeContainer(container.id);
    }
    return RELIST;
  }

  async function finishRemoval(row: PodRow): Promise<Outcome> {
    await networks.remove(row.id);
    await volumes.remove(row.id);
    deps.secrets.removeFiles(row.id);
    await gpuLeases.release(row.id, () => false);
    records.transaction(() => {
      ports.release(row.id, []);
      const gone = { container_id: null, image_id: null, reason: null, message: '' };
      const unchanged = { staged_json: null, fallback_json: null, refused_json: null };
      const phase = 'removed' as const;
      records.apply(row.id, () => ({ ...gone, ...unchanged, phase, next_retry_ms: null }));
    });
    return 'settled';
  }

  async function stopForReboot(row: PodRow, container: ContainerState): Promise<Outcome> {
    await engine.stopContainer(container.id, specOf(row).stop_grace_seconds);
    return RELIST;
  }

  /**
   * Writes the row before the stop, so that the exit does not count as a failure: phase `pending` leads to a start when
   * the pause ends.
   */
  async function stopForPause(row: PodRow, container: ContainerState): Promise<Outcome> {
    commit(row, (now) => (now.phase === 'running' ? { phase: 'pending' } : null));
    await engine.stopContainer(container.id, specOf(row).stop_grace_seconds);
    return RELIST;
  }

  function beginReboot(row: PodRow, container: ContainerState): Outcome {
    commit(row, (now) => ({
      phase: 'rebooting',
      reboot_target: now.reboots_requested,
      reboot_from_ms: container.startedMs,
      next_retry_ms: null,
      attempts: 0,
    }));
    return { observed: [container] };
  }

  function recordExit(step: Extract<Step, { kind: 'record_exit' }>, row: PodRow): Outcome {
    const at = { nowMs: clock.now(), random, cause: step.cause };
    commit(row, (now) => afterExit(now, step.container, at));
    return { observed: [step.container] };
  }

  function recordLost(row: PodRow): Outcome {
    const failure = { reason: 'Internal', message: LOST } as const;
    commit(row, (now) => ({
      ...afterFailure(now, failure, { nowMs: clock.now(), random }),
      container_id: null,
      image_id: null,
      reboots_done: now.reboots_requested,
    }));
    return { observed: [] };
  }

  async function runStep(step: Action, row: PodRow, signal: AbortSignal): Promise<Outcome> {
    switch (step.kind) {
      case 'pull':
        return pull(row, signal);
      case 'create':
        return create(row);
      case 'start':
        return start(row, step.container);
      case 'adopt':
      case 'finish_reboot':
        return outcomeOf(commit(row, (now) => runningPatch(now, step.container, deps.bootId)));
      case 'record_exit':
        return recordExit(step, row);
      case 'record_lost':
        return recordLost(row);
      case 'rejoin_network':
        return rejoinNetwork(row, step.container);
      case 'begin_reboot':
        return beginReboot(row, step.container);
      case 'stop_for_reboot':
        return stopForReboot(row, step.container);
      case 'stop_for_pause':
        return stopForPause(row, step.container);
      case 'remove_containers':
        return removeContainers(row, step.containers);
      case 'release_leases':
        return change.releaseLeases(row);
      case 'switch':
        return change.switchOver(row);
      case 'stop_fallback':
        return change.stopFallback(row, step.container);
      case 'commit_change':
        return change.commitChange(row);
      case 'roll_back':
        return change.rollBack(row, step.cause);
      case 'finish_removal':
        return finishRemoval(row);
    }
  }

  return {
    /** Rejects with the error of the engine, the image service or the port service; step-failure.ts classifies it. */
    async run(step: Action, row: PodRow, signal: AbortSignal): Promise<Outcome> {
      const beganMs = clock.monotonicMs();
      const outcome = await runStep(step, row, signal);
      const stage = LAUNCH_STAGES.find((kind) => kind === step.kind);
      if (stage !== undefined) deps.onLaunchStep(stage, clock.monotonicMs() - beganMs);
      return outcome;
    },
  };
}
