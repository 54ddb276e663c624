/** Notebook servers in pods: requests and views. `notebook.worker.ts` does the work. */
import type { NotebookRequest, NotebookView } from '#shared/api/agent/notebook.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { isGatewayPort, specOf } from '../../pods/pod-row.ts';
import { createNotebookProbe } from './bring-up.ts';
import { notebookView, requestedRow } from './notebook.state.ts';
import type { NotebookStore } from './notebook.store.ts';
import type { NotebookWorker } from './notebook.worker.ts';

/** Interval between checks of each notebook server. */
export const NOTEBOOK_INTERVAL_MS = 3_000;
const MAX_BRING_UPS = 4;

export type NotebookService = ReturnType<typeof createNotebookService>;

/** Does nothing until `runOnce` is called. Call that every NOTEBOOK_INTERVAL_MS. */
export function createNotebookService(deps: {
  execEngine(): Promise<ExecEngine>;
  store: NotebookStore;
  records: PodRecords;
  ports: PortService;
  clock: Clock;
  log: Log;
}) {
  const { store, records, clock } = deps;
  const workers = new Map<string, NotebookWorker>();
  const probe = createNotebookProbe(clock);
  const bringUps = createSemaphore(MAX_BRING_UPS);
  let exec: Promise<ExecEngine> | null = null;
  let isStopped = false;

  async function workerOf(podId: string): Promise<NotebookWorker> {
    const known = workers.get(podId);
    if (known !== undefined) return known;
    // Loaded on first use, to save memory in agents without notebooks.
    const { createNotebookWorker } = await import('./notebook.worker.ts');
    exec ??= deps.execEngine();
    const workerPorts = { ...deps, probe, bringUps, exec: await exec };
    const worker = workers.get(podId) ?? createNotebookWorker(podId, workerPorts);
    workers.set(podId, worker);
    return worker;
  }

  async function check(podId: string): Promise<void> {
    const worker = await workerOf(podId);
    if (!isStopped) worker.check();
  }

  function checkPort(podId: string, port: number): void {
    const row = records.get(podId);
    if (row === null) throw new ApiError('pod_not_found', 'There is no such pod on this host');
    if (row.desired === 'removed') {
      throw new ApiError('pod_state_conflict', 'This pod is being removed');
    }
    const spec = specOf(row);
    if (spec.internal_ports.includes(port) && !isGatewayPort(spec, port)) return;
    throw new ApiError('bad_request', `Port ${port} of this pod is not open to a notebook server`, {
      hint: `Choose one of its internal ports other than SSH's: ${spec.internal_ports.join(', ')}.`,
    });
  }

  return {
    /** Stores the request and interrupts the work of an earlier one. Durable once it returns. Throws ApiError. */
    async request(podId: string, wanted: NotebookRequest): Promise<void> {
      checkPort(podId, wanted.internal_port);
      const before = store.get(podId);
      if (before !== null && wanted.request <= before.request) return;
      store.put(requestedRow(podId, wanted, before, clock.now()));
      void workers
        .get(podId)
        ?.interrupt()
        .then(() => check(podId));
      if (!workers.has(podId)) await check(podId);
    },
    /** Null if no notebook was requested. */
    viewOf(podId: string): NotebookView | null {
      const row = store.get(podId);
      return row === null ? null : notebookView(row);
    },
    /** Starts a check of each server; does not wait for the checks. */
    async runOnce(): Promise<void> {
      const rows = store.list();
      const wanted = new Set(rows.map((row) => row.pod_id));
      for (const podId of workers.keys()) if (!wanted.has(podId)) workers.delete(podId);
      for (const podId of wanted) await check(podId);
    },
    /** Interrupts installations, which the next agent restarts. Running servers keep running. */
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all([...workers.values()].map((worker) => worker.interrupt()));
    },
  };
}
