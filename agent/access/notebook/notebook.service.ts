/** Notebook servers in pods: what is asked for them, and how they are. The work is notebook.worker.ts's. */
import type { NotebookRequest, NotebookView } from '#shared/api/agent/notebook.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { isGatewayPort, specOf } from '../../pods/pod-row.ts';
import { createAskNotebook } from './bring-up.ts';
import { notebookView, requestedRow } from './notebook.state.ts';
import type { NotebookStore } from './notebook.store.ts';
import type { NotebookWorker } from './notebook.worker.ts';

/** Between two looks at each notebook server. */
export const NOTEBOOK_INTERVAL_MS = 3_000;
const MAX_BRING_UPS = 4;

export type NotebookService = ReturnType<typeof createNotebookService>;

/** `runOnce` belongs into a loop; nothing is done before. */
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
  const ask = createAskNotebook(clock);
  const bringUps = createSemaphore(MAX_BRING_UPS);
  let exec: Promise<ExecEngine> | null = null;
  let stopped = false;

  async function workerOf(podId: string): Promise<NotebookWorker> {
    const known = workers.get(podId);
    if (known !== undefined) return known;
    // Most agents never need it, so it is not kept in their memory.
    const { createNotebookWorker } = await import('./notebook.worker.ts');
    exec ??= deps.execEngine();
    const workerPorts = { ...deps, ask, bringUps, exec: await exec };
    const worker = workers.get(podId) ?? createNotebookWorker(podId, workerPorts);
    workers.set(podId, worker);
    return worker;
  }

  async function look(podId: string): Promise<void> {
    const worker = await workerOf(podId);
    if (!stopped) worker.look();
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
    /** Durable once it returns; throws ApiError. What an earlier request had begun is ended. */
    async request(podId: string, wanted: NotebookRequest): Promise<void> {
      checkPort(podId, wanted.internal_port);
      const before = store.get(podId);
      if (before !== null && wanted.request <= before.request) return;
      store.put(requestedRow(podId, wanted, before, clock.now()));
      void workers
        .get(podId)
        ?.interrupt()
        .then(() => look(podId));
      if (!workers.has(podId)) await look(podId);
    },
    /** Null when none was asked for. */
    viewOf(podId: string): NotebookView | null {
      const row = store.get(podId);
      return row === null ? null : notebookView(row);
    },
    /** Has each of them looked at; does not wait for those that take long. */
    async runOnce(): Promise<void> {
      const rows = store.list();
      const wanted = new Set(rows.map((row) => row.pod_id));
      for (const podId of workers.keys()) if (!wanted.has(podId)) workers.delete(podId);
      for (const podId of wanted) await look(podId);
    },
    /** Servers that answer stay; what is being installed is ended, and begun again by the next agent. */
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all([...workers.values()].map((worker) => worker.interrupt()));
    },
  };
}
