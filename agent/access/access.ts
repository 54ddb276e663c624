/** Composition of the ways into pods: logs, terminals, notebooks. */
import type { HttpServer } from '#shared/http/server.ts';
import type { BuildLogSource } from '../logs/build-frames.ts';
import { registerLogRoutes } from '../logs/log.routes.ts';
import { createLogService } from '../logs/log.service.ts';
import type { LogEngine } from '../logs/log-follow.ts';
import type { FrameCounts } from '../logs/log-frames.ts';
import type { PodRecords } from '../pods/pod.records.ts';
import type { PodService } from '../pods/pod.service.ts';
import type { PodRow } from '../pods/pod.store.ts';
import { registerTerminalRoutes } from './exec/terminal.routes.ts';
import { createTerminalHost, type TerminalPorts } from './exec/terminals.ts';
import { registerNotebookRoutes } from './notebook/notebook.routes.ts';
import type { NotebookService } from './notebook/notebook.service.ts';
import { POD_USER } from './ssh/ssh.service.ts';

export type PodAccessPorts = Omit<TerminalPorts, 'terminalPod'> & {
  engine: LogEngine;
  metrics: { logged(counts: FrameCounts): void };
};

/** The parts of the pods module that access needs. */
export type AccessiblePods = {
  records: PodRecords;
  service: PodService;
  notebooks: NotebookService;
  imageCore: { logs: BuildLogSource };
  /** Key of the build log of the pod's image; null if the image was not built on this node. */
  buildKeyOf(row: PodRow): string | null;
};

/** Accepts no client before `register`. */
export function createPodAccess(ports: PodAccessPorts, pods: AccessiblePods) {
  const { records } = pods;
  const logs = createLogService({
    clock: ports.clock,
    engine: ports.engine,
    podLogSource: async (podId) => {
      const row = records.get(podId);
      if (row === null) return null;
      const buildKey = pods.buildKeyOf(row);
      return { containerId: row.container_id, phase: row.phase, buildKey };
    },
    builds: pods.imageCore.logs,
    onFrames: ports.metrics.logged,
  });
  const terminals = createTerminalHost({
    ...ports,
    terminalPod(podId) {
      const row = records.get(podId);
      if (row === null || row.phase === 'removed') return null;
      return { containerId: row.phase === 'running' ? row.container_id : null, user: POD_USER };
    },
  });

  return {
    register(server: HttpServer): void {
      registerNotebookRoutes(server, { notebooks: pods.notebooks, pods: pods.service });
      registerLogRoutes(server, { logs });
      registerTerminalRoutes(server, terminals);
    },

    /** Number of streams that follow a pod's log. */
    logFollowers: logs.followers,

    /** Hangs up shells that an earlier run of the agent left in pods. */
    async removeLeftovers(): Promise<void> {
      const running = records.list().flatMap(({ container_id: id }) => (id === null ? [] : [id]));
      await terminals.endLeftovers(running);
    },

    /** Ends every stream and terminal. */
    async close(): Promise<void> {
      logs.close();
      await terminals.close();
    },
  };
}
