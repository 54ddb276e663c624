/** Brings up, watches and restarts one pod's notebook server, strictly one step at a time. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { createSemaphore } from '#shared/runtime/semaphore.ts';
import { EngineError } from '../../containers/engine/engine.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { PodRow } from '../../pods/pod.store.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { type BringUpPorts, bringUp, NotebookFailure, type NotebookProbe } from './bring-up.ts';
import {
  ended,
  failed,
  type NotebookPatch,
  running as runningPatch,
  SETTLED_MS,
} from './notebook.state.ts';
import type { NotebookRow, NotebookStore } from './notebook.store.ts';
import { createPodPrograms } from './pod-programs.ts';

export type NotebookPorts = {
  exec: ExecEngine;
  probe: NotebookProbe;
  store: NotebookStore;
  records: PodRecords;
  ports: PortService;
  clock: Clock;
  log: Log;
  /** Bounds concurrent bring-ups on this host. */
  bringUps: ReturnType<typeof createSemaphore>;
};

export type NotebookWorker = ReturnType<typeof createNotebookWorker>;

/** Consecutive failed checks of a live server before it is restarted. */
const MAX_MISSES = 4;

type RunningPod = PodRow & { container_id: string };

/** A newer request replaced this one. */
class Superseded extends Error {
  override name = 'Superseded';
}

/** `check` starts the work that is due; it never throws. */
export function createNotebookWorker(podId: string, deps: NotebookPorts) {
  const { exec, probe, store, records, ports, clock, log } = deps;
  let running: Promise<void> | null = null;
  let interruption = new AbortController();
  let misses = 0;

  function hostPortOf(row: NotebookRow): number | null {
    const lease = ports.portsOf(podId).find(({ internal }) => internal === row.internal_port);
    return lease?.host ?? null;
  }

  function saver(row: NotebookRow): (patch: NotebookPatch) => NotebookRow {
    return (patch) => {
      const next = store.change(podId, row.request, patch);
      if (next === null) throw new Superseded();
      return next;
    };
  }

  function programsIn(pod: RunningPod, save: (patch: NotebookPatch) => NotebookRow) {
    const onCreated = (exec_id: string) => void save({ exec_id });
    return createPodPrograms({ exec, clock, containerId: pod.container_id, onCreated });
  }

  async function runDueWork(signal: AbortSignal): Promise<void> {
    const row = store.get(podId);
    const pod = runningPod(records.get(podId));
    if (row === null || pod === null || row.status === 'failed') return;
    if (row.status === 'running') return watch(row, pod);
    if (row.next_try_ms > clock.now()) return;
    await deps.bringUps.run(() => bringUpServer(row, pod, signal), signal);
  }

  async function watch(row: NotebookRow, pod: RunningPod): Promise<void> {
    const save = saver(row);
    const port = hostPortOf(row);
    if (port !== null && (await probe.acceptsToken(port, row.token))) {
      misses = 0;
      const settled = row.attempts > 0 && clock.now() - row.since_ms > SETTLED_MS;
      if (settled) save({ attempts: 0 });
      return;
    }
    misses += 1;
    const alive = row.exec_id !== null && (await programsIn(pod, save).isAlive(row.exec_id));
    if (alive && misses < MAX_MISSES) return;
    misses = 0;
    const message = alive ? 'The notebook server does not answer' : 'The notebook server ended';
    const facts = { nowMs: clock.now(), podBeganMs: pod.phase_since_ms, message };
    save(ended(row, facts));
    log.info({ pod_id: podId, detail: message }, 'notebook server restarting');
  }

  async function bringUpServer(
    row: NotebookRow,
    pod: RunningPod,
    signal: AbortSignal,
  ): Promise<void> {
    const save = saver(row);
    const late = clock.deadline(Math.max(0, row.deadline_ms - clock.now()));
    const bringUpPorts: BringUpPorts = {
      programs: programsIn(pod, save),
      probe,
      clock,
      hostPort: () => hostPortOf(row),
      save,
      signal: AbortSignal.any([signal, late]),
    };
    try {
      await bringUp(row, bringUpPorts);
      save(runningPatch(clock.now()));
    } catch (error) {
      const failure = failureOf(error, late.aborted && !signal.aborted);
      if (failure === null) throw error;
      log.info({ pod_id: podId, reason: failure.reason }, 'notebook server failed to start');
      save(failed(store.get(podId) ?? row, failure, clock.now()));
    }
  }

  async function run(): Promise<void> {
    const { signal } = interruption;
    try {
      await runDueWork(signal);
    } catch (error) {
      // The pod may have stopped in the meantime; the next check uses its new state.
      const expected = signal.aborted || error instanceof Superseded;
      if (expected || error instanceof EngineError) {
        log.debug({ pod_id: podId, detail: messageOf(error) }, 'notebook work skipped');
      } else {
        log.error({ pod_id: podId, err: error }, 'notebook work failed');
      }
    }
    running = null;
  }

  return {
    check(): void {
      running ??= run();
    },
    /** Aborts the running work, because of a newer request or the end of the agent. */
    async interrupt(): Promise<void> {
      interruption.abort();
      interruption = new AbortController();
      await running;
    },
  };
}

function runningPod(pod: PodRow | null): RunningPod | null {
  const { phase, desired, container_id } = pod ?? {};
  const runs = phase === 'running' && desired === 'running';
  return pod !== null && runs && typeof container_id === 'string' ? { ...pod, container_id } : null;
}

function failureOf(error: unknown, late: boolean) {
  if (error instanceof NotebookFailure) return error;
  const message = 'The notebook server did not start in time';
  return late ? { reason: 'NotebookDeadlineExceeded' as const, message } : null;
}
