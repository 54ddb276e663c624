/** Kills the agent, restic and the central API with SIGKILL during backups and restores: no data is lost. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createFaultMatrix,
  type FaultMatrix,
  VICTIMS,
} from '../../test/fakes/faults/fault-matrix.ts';
import { fingerprintOf } from '../../test/fakes/mixed-tree.ts';
import {
  type FaultPod,
  type FaultScene,
  startFaultScene,
} from '../../test/fakes/scenes/fault-scene.ts';

let scene: FaultScene;
let matrix: FaultMatrix;
let pod: FaultPod;
let kept: { snapshot: string; tree: readonly string[] };

beforeAll(async () => {
  scene = await startFaultScene();
  matrix = createFaultMatrix(scene);
  pod = await matrix.newPod();
  kept = { snapshot: await matrix.backedUp(pod), tree: fingerprintOf(pod.volume) };
});
afterAll(async () => {
  pod?.close();
  await scene?.close();
});

const PREPARING = { call: 'GET keys', nth: 1, moment: 'before' } as const;
/** restic's first request, which restic does not retry. */
const BEGINNING = { call: 'HEAD config', nth: 2, moment: 'before' } as const;
const SENDING = { call: 'POST data', nth: 1, moment: 'before' } as const;
/** Moment at which the snapshot is stored, but no process has recorded it. */
const SENT = { call: 'POST snapshots', nth: 1, moment: 'after' } as const;
/** Moment at which the lock is removed, but restic has no response and retries the request. */
const UNLOCKED = { call: 'DELETE locks', nth: 1, moment: 'after' } as const;
const VERIFYING = { call: 'GET data', nth: 1, moment: 'before' } as const;
/** Moment at which restic is writing files. */
const FETCHING = { call: 'GET data', nth: 5, moment: 'after' } as const;

/** A sample of moments at which each process is killed; `npm run soak -- --only backup` covers every request. */
const BACKUP = {
  agent: [PREPARING, SENDING, VERIFYING],
  restic: [PREPARING, SENT, VERIFYING],
  central: [BEGINNING, SENT, UNLOCKED, VERIFYING],
};

for (const victim of VICTIMS) {
  it(`completes a backup after a kill of its ${victim}`, async () => {
    for (const at of BACKUP[victim]) await matrix.backup(victim, at);
  });

  it(`completes a restore after a kill of its ${victim} during the fetch`, async () => {
    await matrix.restore(victim, FETCHING, pod, kept);
  });
}

it('completes a restore after a kill of its agent during the exchange of trees', async () => {
  const stages = ['verifying', 'stopping', 'swapping', 'starting', 'committed'];
  for (const [index, stage] of stages.entries()) {
    const when = index % 2 === 0 ? 'before' : 'after';
    await matrix.restoreAtStage({ stage, when }, pod, kept);
  }
  expect(pod.store.unfinished(10)).toEqual([]);
});
