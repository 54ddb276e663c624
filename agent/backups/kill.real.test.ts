/** kill -9 of the agent, of restic and of the central API, in the middle of backups and restores: nothing is lost. */
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
/** What restic asks first of all; it does not ask twice. */
const BEGINNING = { call: 'HEAD config', nth: 2, moment: 'before' } as const;
const SENDING = { call: 'POST data', nth: 1, moment: 'before' } as const;
/** The snapshot is there, and nobody knows. */
const SENT = { call: 'POST snapshots', nth: 1, moment: 'after' } as const;
/** The lock is gone, and restic asks for its end again. */
const UNLOCKED = { call: 'DELETE locks', nth: 1, moment: 'after' } as const;
const VERIFYING = { call: 'GET data', nth: 1, moment: 'before' } as const;
/** Files are written. */
const FETCHING = { call: 'GET data', nth: 5, moment: 'after' } as const;

/** Each stage for each of them; `npm run soak -- --only backup` has every request of all of them. */
const BACKUP = {
  agent: [PREPARING, SENDING, VERIFYING],
  restic: [PREPARING, SENT, VERIFYING],
  central: [BEGINNING, SENT, UNLOCKED, VERIFYING],
};

for (const victim of VICTIMS) {
  it(`loses nothing of a backup whose ${victim} is killed`, async () => {
    for (const at of BACKUP[victim]) await matrix.backup(victim, at);
  });

  it(`loses nothing of a restore whose ${victim} is killed while it fetches`, async () => {
    await matrix.restore(victim, FETCHING, pod, kept);
  });
}

it('loses nothing of a restore whose agent is killed as trees are exchanged', async () => {
  const stages = ['verifying', 'stopping', 'swapping', 'starting', 'committed'];
  for (const [index, stage] of stages.entries()) {
    const when = index % 2 === 0 ? 'before' : 'after';
    await matrix.restoreAtStage({ stage, when }, pod, kept);
  }
  expect(pod.store.unfinished(10)).toEqual([]);
});
