/**
 * A process that runs one agent operation and then waits for a test to kill it, for ten minutes unless it has halted.
 * Its argument contains the scene, the request and the stage at which it halts. It writes its results to the scene's
 * folder.
 */
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { BackupRequest, RestoreRequest } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import type { OperationStore } from '../../../agent/backups/operation.store.ts';
import { createBackupScene } from '../scenes/backup-scene.ts';
import { stepOf } from './mortal-store.ts';

const Order = z.object({
  scene: z.object({
    folder: z.string(),
    podId: z.string(),
    location: z.string(),
    container: z.boolean().optional(),
  }),
  asked: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('backup'), request: BackupRequest }),
    z.object({ kind: z.literal('restore'), request: RestoreRequest }),
  ]),
  /** Stage, or step of a restore, before or after which the process halts; null: it never halts. */
  haltAt: z
    .object({ stage: z.string(), step: z.string().optional(), when: z.enum(['before', 'after']) })
    .nullable(),
  /** File that the process creates immediately before it halts. */
  haltedFile: z.string(),
  /** Program that the process runs instead of restic. */
  program: z.string(),
});
export type Order = z.input<typeof Order>;

const order = Order.parse(JSON.parse(process.argv[2] ?? ''));
const { scene: given, asked, haltAt, haltedFile, program } = order;
const scene = createBackupScene({
  ...given,
  container: given.container === true,
  made: false,
  repository: asked.request.repository,
});

function halting(store: OperationStore): OperationStore {
  const halt = () => {
    writeFileSync(haltedFile, '');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  return {
    ...store,
    put(row) {
      const isStep = haltAt?.step === undefined || haltAt.step === stepOf(row);
      const isThere = haltAt?.stage === row.stage && isStep;
      if (isThere && haltAt?.when === 'before') halt();
      store.put(row);
      if (isThere) halt();
    },
  };
}

const service = scene.open({ store: halting(scene.store), program });
if (asked.kind === 'backup') service.beginBackup(given.podId, asked.request);
else service.beginRestore(given.podId, asked.request);
await systemClock.sleep(600_000);
