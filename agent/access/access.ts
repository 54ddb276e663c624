/** Composes the services that give clients access to pods: SSH, terminals, notebooks, logs. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import type { Images } from '../containers/images/images.ts';
import type { PortService } from '../leases/port.service.ts';
import { registerLogRoutes } from '../logs/log.routes.ts';
import { createLogService } from '../logs/log.service.ts';
import type { FrameCounts } from '../logs/log-frames.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodService } from '../pods/pod.service.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { registerTerminalRoutes } from './exec/terminal.routes.ts';
import { createTerminalHost } from './exec/terminals.ts';
import { registerNotebookRoutes } from './notebook/notebook.routes.ts';
import { createNotebookService, NOTEBOOK_INTERVAL_MS } from './notebook/notebook.service.ts';
import { createNotebookStore } from './notebook/notebook.store.ts';
import type { GatewayLink } from './ssh/gateway-link.ts';
import type { KeyFolders } from './ssh/key-folders.ts';
import { createOwnSshd, createReadBanner, OWN_SSHD_INTERVAL_MS } from './ssh/own-sshd.job.ts';
import { createSshService, POD_USER } from './ssh/ssh.service.ts';
import { createSshStore } from './ssh/ssh.store.ts';

export type AccessPorts = {
  executorId: string;
  clock: Clock;
  log: Log;
  database: DatabaseSync;
  engine: ContainerEngine;
  gatewayLink: GatewayLink;
  /** Host key of new pods, in OpenSSH's file format. */
  hostKey: string;
  /** Key folders of pods that run their own SSH server. */
  keyFolders: KeyFolders;
  /** Folder with sftp-server, mounted into every pod; null if this host has none. */
  sftpFolder: string | null;
  /** Starts programs inside pods. Called when the first one is needed. */
  execEngine(): Promise<ExecEngine>;
  /** Called with the size of every batch of log lines sent to a client. */
  onLogFrames(counts: FrameCounts): void;
};

export type Access = ReturnType<typeof createAccess>;

/** Serves no client before `register` and `start` are called. */
export function createAccess(
  ports: AccessPorts,
  deps: {
    records: PodRecords;
    portLeases: PortService;
    images: Images;
    /** True while the store may lack pods. */
    isRebuilding(): boolean;
  },
) {
  const { clock, log, database } = ports;
  const { records, portLeases, images } = deps;
  const ownSshd = createOwnSshd({
    records,
    ports: portLeases,
    readBanner: createReadBanner(clock),
    clock,
  });
  const ssh = createSshService({
    records,
    ports: portLeases,
    keyFolders: ports.keyFolders,
    ownSshd,
    store: createSshStore(database),
    link: ports.gatewayLink,
    hostKey: ports.hostKey,
    sftp: ports.sftpFolder !== null,
    isRebuilding: deps.isRebuilding,
    clock,
    log,
  });
  const notebooks = createNotebookService({
    execEngine: ports.execEngine,
    store: createNotebookStore(database),
    records,
    ports: portLeases,
    clock,
    log,
  });
  const logs = createLogService({
    clock,
    engine: ports.engine,
    podLogSource: async (podId) => {
      const row = records.get(podId);
      if (row === null) return null;
      const buildKey = images.podImages.buildKeyOf(row.id, row);
      return { containerId: row.container_id, phase: row.phase, buildKey };
    },
    builds: images.logs,
    onFrames: ports.onLogFrames,
  });
  const terminals = createTerminalHost({
    ...ports,
    terminalPod(podId) {
      const row = records.get(podId);
      if (row === null || row.phase === 'removed') return null;
      return { containerId: row.phase === 'running' ? row.container_id : null, user: POD_USER };
    },
  });
  const work: PeriodicWork[] = [
    { name: 'notebooks', intervalMs: NOTEBOOK_INTERVAL_MS, run: () => notebooks.runOnce() },
    { name: 'own sshd', intervalMs: OWN_SSHD_INTERVAL_MS, run: () => ownSshd.runOnce() },
  ];
  let gateway: { stop(): Promise<void> } | null = null;

  return {
    ssh,
    notebookOf: notebooks.viewOf,
    /** Number of clients that follow logs. */
    logFollowers: logs.followers,
    work,

    register(server: HttpServer, pods: PodService): void {
      registerNotebookRoutes(server, { notebooks, pods });
      registerLogRoutes(server, { logs });
      registerTerminalRoutes(server, terminals);
    },

    /** Ends the shells that an earlier agent process left in pods. */
    async removeLeftovers(): Promise<void> {
      const running = records.list().flatMap(({ container_id: id }) => (id === null ? [] : [id]));
      await terminals.endLeftovers(running);
    },

    /** Publishes the pods to the SSH gateway and follows its reports. */
    start(): void {
      ssh.publish();
      gateway = ports.gatewayLink.follow(() => ssh.exchangeTakenPorts());
    },

    /** Ends log streams and terminals, so that the server can close. */
    async closeStreams(): Promise<void> {
      logs.close();
      await terminals.close();
    },

    /** Ends notebook installations and stops publishing to the gateway. */
    async stop(): Promise<void> {
      await notebooks.stop();
      await gateway?.stop();
      ssh.close();
    },
  };
}
