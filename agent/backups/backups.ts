/** What keeps renters' data put together: backups, restores, drills, and the volumes that outlive pods. */
import type { HttpServer } from '#shared/http/server.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import type { AgentPorts } from '../agent-ports.ts';
import { registerVolumeRoutes } from '../containers/volumes/volume.routes.ts';
import type { PodCore } from '../pod-core.ts';
import { SETTLING_MS } from '../pods/pod.trial.ts';
import type { PodHold } from '../pods/pod-hold.ts';
import { createRunChild } from './bounded-child.ts';
import { registerOperationRoutes } from './operation.routes.ts';
import { createOperationService } from './operation.service.ts';
import type { OperationRow } from './operation.store.ts';
import { createRestic } from './restic.ts';
import { createResticCgroup } from './restic-cgroup.ts';

/** Nothing runs until `operations` are started. `onEnded` hears of each that is over. */
export function createSafekeeping(
  ports: AgentPorts,
  core: PodCore,
  onEnded: (row: OperationRow) => void,
) {
  const { clock, log, executorId } = ports;
  const operations = createOperationService({
    ...ports,
    store: core.operations,
    ...subjectsOf(core),
    restic: createRestic({
      clock,
      runChild: createRunChild(clock),
      program: 'restic',
      cgroup: createResticCgroup({ name: `podwright-backups-${executorId}`, log }),
      isRoot: process.getuid?.() === 0,
    }),
    runCommand,
    settlingMs: SETTLING_MS,
    onEnded,
  });

  return {
    operations,

    register(server: HttpServer): void {
      registerOperationRoutes(server, operations);
      registerVolumeRoutes(server, { volumes: core.lastingVolumes, operations });
    },
  };
}

/** What backups and restores are about: a pod, or a volume's copy, in which nothing runs. */
function subjectsOf({ records, lastingVolumes, hold, dataRootsOf }: PodCore) {
  const { knows } = lastingVolumes;
  return {
    hold: {
      wake: (id: string) => (knows(id) ? undefined : hold.wake(id)),
      standingOf: async (id: string) => (knows(id) ? 'stopped' : hold.standingOf(id)),
    } satisfies PodHold,
    dataRootsOf: (id: string) => (knows(id) ? lastingVolumes.rootsOf(id) : dataRootsOf(id)),
    isGone: (id: string) =>
      knows(id) ? lastingVolumes.isGone(id) : records.get(id)?.desired !== 'running',
  };
}
