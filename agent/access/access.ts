/** The ways into pods put together: logs, terminals, notebooks. */
import type { HttpServer } from '#shared/http/server.ts';
import type { AgentPorts } from '../agent-ports.ts';
import { registerLogRoutes } from '../logs/log.routes.ts';
import { createLogService } from '../logs/log.service.ts';
import type { PodCore } from '../pod-core.ts';
import { registerTerminalRoutes } from './exec/terminal.routes.ts';
import { createTerminalHost } from './exec/terminal-host.ts';
import { registerNotebookRoutes } from './notebook/notebook.routes.ts';
import { POD_USER } from './ssh/ssh.service.ts';

/** Nobody is let in yet. */
export function createPodAccess(ports: AgentPorts, core: PodCore) {
  const { records } = core;
  const logs = createLogService({
    clock: ports.clock,
    engine: ports.engine,
    podLogSource: async (podId) => {
      const row = records.get(podId);
      if (row === null) return null;
      const buildKey = core.buildKeyOf(row);
      return { containerId: row.container_id, phase: row.phase, buildKey };
    },
    builds: core.imageCore.logs,
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
      registerNotebookRoutes(server, { notebooks: core.notebooks, pods: core.service });
      registerLogRoutes(server, { logs });
      registerTerminalRoutes(server, terminals);
    },

    /** How many follow logs. */
    logFollowers: logs.followers,

    /** Ends shells that an earlier run has left in pods. */
    async removeLeftovers(): Promise<void> {
      const running = records.list().flatMap(({ container_id: id }) => (id === null ? [] : [id]));
      await terminals.endLeftovers(running);
    },

    /** Ends every stream. */
    async close(): Promise<void> {
      logs.close();
      await terminals.close();
    },
  };
}
