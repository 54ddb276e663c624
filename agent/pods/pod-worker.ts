/** Workers of pods. Each lists its containers, plans, runs one step and repeats until nothing is left to do. */
import type { ContainerState } from '../containers/engine/engine.ts';
import { podLabels } from '../containers/engine/labels.ts';
import type { PortService } from '../leases/port.service.ts';
import { afterFailure } from './backoff.ts';
import type { OomEvents } from './oom-events.ts';
import type { FactsOf } from './plan-facts.ts';
import { planPod } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import type { PodPatch } from './pod-records.ts';
import type { PodSteps } from './pod-steps.ts';
import { createStagedImage, type StagedImagePorts } from './staged-image.ts';
import { type Failure, failureOf, type StepKind } from './step-failure.ts';

export type WorkerPorts = StagedImagePorts & {
  executorId: string;
  ports: PortService;
  steps: PodSteps;
  factsOf: FactsOf;
  oomEvents: Pick<OomEvents, 'complete'>;
};

export type PodWorker = ReturnType<typeof createPodWorker>;

/** A run ends after this many steps and waits for the next wake, so that a worker cannot spin. */
const MAX_STEPS_PER_RUN = 32;
const RECHECK_MS = 500;
/** Consecutive port conflicts before the pod backs off. */
const MAX_PORT_CONFLICTS = 5;

/**
 * Creates a worker that sleeps until it is woken, and wakes itself when a retry is due. Steps of one pod never run
 * concurrently.
 */
export function createPodWorker(podId: string, deps: WorkerPorts) {
  const { health, records, ports, steps, clock, log } = deps;
  let woken = false;
  let stopping = false;
  let running: Promise<void> | null = null;
  let timer = new AbortController();
  let interruption = new AbortController();
  const stagedImage = createStagedImage(podId, deps, wake);

  function wake(): void {
    woken = true;
    timer.abort();
    if (!stopping) running ??= drain();
  }

  function wakeAt(untilMs: number): void {
    timer.abort();
    timer = new AbortController();
    const waitMs = Math.max(0, untilMs - clock.now());
    clock.sleep(waitMs, timer.signal).then(wake, () => undefined);
  }

  async function drain(): Promise<void> {
    while (woken && !stopping) {
      woken = false;
      try {
        await runSteps();
      } catch (error) {
        log.error({ err: error, pod_id: podId }, 'pod worker failed');
        wakeAt(clock.now() + RECHECK_MS);
      }
    }
    running = null;
  }

  async function listContainers(): Promise<readonly ContainerState[]> {
    const found = await health.listContainers(podLabels(deps.executorId, podId));
    return found.map(deps.oomEvents.complete);
  }

  async function runSteps(): Promise<void> {
    let observed: readonly ContainerState[] | null = null;
    for (let count = 0; count < MAX_STEPS_PER_RUN && !stopping; count += 1) {
      const { signal } = interruption;
      let doing: StepKind = 'wait';
      try {
        observed ??= await listContainers();
        const row = records.get(podId);
        if (row === null) return;
        if (!stopping) stagedImage.follow(row);
        const step = planPod(row, observed, deps.factsOf(row));
        if (step.kind === 'wait') {
          if (step.untilMs !== null) wakeAt(step.untilMs);
          return;
        }
        doing = step.kind;
        const outcome = await steps.run(step, row, signal);
        if (outcome === 'settled') return;
        observed = outcome.observed;
      } catch (error) {
        observed = null;
        // A step that was interrupted because the row changed has not failed.
        if (signal.aborted) continue;
        const canContinue = handle(failureOf(doing, error), doing);
        if (!canContinue) return;
      }
    }
  }

  /** Records a failure. Returns true if the worker may continue at once. */
  function handle(failure: Failure, step: StepKind): boolean {
    log.warn(
      { pod_id: podId, step, failure: failure.kind, detail: failure.message },
      'step failed',
    );
    switch (failure.kind) {
      case 'engine_away':
        health.lost(failure.message);
        return false;
      case 'recheck':
        wakeAt(clock.now() + RECHECK_MS);
        return false;
      case 'name_taken':
        records.change(podId, (row) => rest(row, 'quarantined', 'NameTaken', failure.message));
        return true;
      case 'port_busy':
        return exchangePort(failure.message);
      case 'permanent':
        records.change(podId, (row) => rest(row, 'failed', failure.reason, failure.message));
        return true;
      case 'retry':
        records.change(podId, (row) => retry(row, failure, step));
        return true;
    }
  }

  function retry(
    row: PodRow,
    failure: Extract<Failure, { kind: 'retry' }>,
    step: StepKind,
  ): PodPatch {
    const repeated = row.reason === failure.reason ? row.attempts + 1 : 1;
    if (repeated >= failure.maxAttempts && row.desired === 'running') {
      return rest(row, 'failed', failure.reason, failure.message);
    }
    const patch = afterFailure(row, failure, { nowMs: clock.now(), random: deps.random });
    // The image was not found when the container was created: it was removed and must be pulled again.
    return failure.reason === 'ImageNotFound' && step === 'create'
      ? { ...patch, image_id: null }
      : patch;
  }

  function rest(
    row: PodRow,
    phase: 'failed' | 'quarantined',
    reason: PodRow['reason'],
    message: string,
  ): PodPatch {
    if (row.desired === 'removed') return { reason, message };
    return { phase, reason, message, next_retry_ms: null, reboots_done: row.reboots_requested };
  }

  function exchangePort(message: string): boolean {
    const conflicts = records.get(podId)?.port_conflicts ?? 0;
    if (conflicts >= MAX_PORT_CONFLICTS) {
      const reason = 'PortConflict';
      const failure: Failure = { kind: 'retry', reason, message, maxAttempts: Infinity };
      records.change(podId, (row) => ({ ...retry(row, failure, 'start'), port_conflicts: 0 }));
      return true;
    }
    try {
      records.transaction(() => {
        ports.replace(podId, message);
        records.apply(podId, (row) => ({
          phase: row.desired === 'running' ? 'creating' : row.phase,
          port_conflicts: conflicts + 1,
          container_id: null,
        }));
      });
      return true;
    } catch (error) {
      return handle(failureOf('start', error), 'start');
    }
  }

  return {
    wake,
    /** Aborts a pull in progress and plans again, because the row has changed. */
    interrupt(): void {
      interruption.abort();
      interruption = new AbortController();
      wake();
    },
    isIdle: () => running === null,
    /** Aborts a pull, waits for any other step to finish, and stops. */
    async stop(): Promise<void> {
      stopping = true;
      timer.abort();
      interruption.abort();
      await Promise.all([running, stagedImage.stop()]);
    },
  };
}

export type PodSupervisor = ReturnType<typeof createPodSupervisor>;

/** Owns one worker per pod, created when first needed. After `stop` every wake is ignored. */
export function createPodSupervisor(ports: WorkerPorts) {
  const workers = new Map<string, PodWorker>();
  let stopped = false;

  function workerOf(podId: string): PodWorker {
    const worker = workers.get(podId) ?? createPodWorker(podId, ports);
    workers.set(podId, worker);
    return worker;
  }

  return {
    wake(podId: string): void {
      if (!stopped) workerOf(podId).wake();
    },
    /** Aborts a pull in progress and wakes the worker. */
    interrupt(podId: string): void {
      if (!stopped) workerOf(podId).interrupt();
    },
    isIdle: (podId: string) => workers.get(podId)?.isIdle() ?? true,
    /** Drops idle workers of pods that are not in `podIds`. */
    retain(podIds: ReadonlySet<string>): void {
      for (const [podId, worker] of workers) {
        if (!podIds.has(podId) && worker.isIdle()) workers.delete(podId);
      }
    },
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all([...workers.values()].map((worker) => worker.stop()));
    },
  };
}
