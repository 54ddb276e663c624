/** How the agent updates itself, put together; where it is not to, what it then says. */
import type { AgentPorts } from '../agent-ports.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodCore } from '../pod-core.ts';
import type { Verification } from '../verify/verification.ts';
import { probeProblem, runningPods, workUnderWay } from './host-work.ts';
import {
  createUpdateService,
  UPDATE_PASS_MS,
  type UpdatePorts,
  type UpdateService,
} from './update.service.ts';
import { noUpdates } from './update.status.ts';
import { createUpdateStore } from './update.store.ts';

/** Nothing is looked for before its work runs. */
export function createSelfUpdate(
  ports: AgentPorts,
  core: PodCore,
  { verify }: Pick<Verification, 'verify'>,
) {
  const updates = ports.updates && updateService(ports.updates, ports, core, verify);
  const pass = (service: UpdateService): PeriodicWork => ({
    name: 'update',
    intervalMs: UPDATE_PASS_MS,
    run: () => service.runOnce(),
  });

  return {
    status: () => updates?.status() ?? noUpdates(),
    work: updates === null ? [] : [pass(updates)],
  };
}

function updateService(
  updates: UpdatePorts,
  { clock, random, log, executorId, database, gpuDriver }: AgentPorts,
  { records, operations }: PodCore,
  verify: Verification['verify'],
): UpdateService {
  return createUpdateService({
    ...{ ...updates, clock, random, log, executorId },
    store: createUpdateStore(database),
    busyWith: () => workUnderWay(records.list(), operations.unfinished(1)),
    runningPods: () => runningPods(records.list()),
    async tryContainer() {
      const { devices } = await gpuDriver.read();
      const found = await verify({ gpu_uuids: devices.map(({ uuid }) => uuid) });
      return probeProblem(found);
    },
  });
}
