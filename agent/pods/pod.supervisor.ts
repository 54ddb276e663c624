/** The workers of all pods: one per pod that is not gone, made when it is first needed. */
import { createPodWorker, type PodWorker, type WorkerPorts } from './pod.worker.ts';

export type PodSupervisor = ReturnType<typeof createPodSupervisor>;

/** After `stop` every wake is ignored. */
export function createPodSupervisor(ports: WorkerPorts) {
  const workers = new Map<string, PodWorker>();
  let stopped = false;

  function workerOf(podId: string): PodWorker {
    const worker = workers.get(podId) ?? createPodWorker(podId, ports);
    workers.set(podId, worker);
    return worker;
  }

  return {
    /** Looks at the pod soon. */
    wake(podId: string): void {
      if (!stopped) workerOf(podId).wake();
    },
    /** The same, ending a pull under way first. */
    interrupt(podId: string): void {
      if (!stopped) workerOf(podId).interrupt();
    },
    isIdle: (podId: string) => workers.get(podId)?.isIdle() ?? true,
    /** Drops the workers of pods that are gone. */
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
