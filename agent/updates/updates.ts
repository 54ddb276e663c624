/** Composes the agent's own updates; without a configured source, reports that updates are off. */

import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { OperationStore } from '../backups/operation.store.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodRecords } from '../pods/pod-records.ts';
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

export type SelfUpdatePorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  gpuDriver: GpuDriver;
  /** Null: the agent does not update itself. */
  updates: UpdatePorts | null;
};

type Parts = {
  records: PodRecords;
  operations: OperationStore;
  verify: Verification['verify'];
};

/** Looks for no update before the caller runs `work`. */
export function createSelfUpdate(ports: SelfUpdatePorts, parts: Parts) {
  const updates = ports.updates && updateService(ports.updates, ports, parts);
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
  { clock, random, log, executorId, database, gpuDriver }: SelfUpdatePorts,
  { records, operations, verify }: Parts,
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
