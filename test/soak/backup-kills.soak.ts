/** Kills the agent, restic or the central API at random requests of backups and restores, for a given time. */
import { systemClock } from '#shared/runtime/clock.ts';
import { createFaultMatrix, VICTIMS } from '../fakes/faults/fault-matrix.ts';
import { fingerprintOf } from '../fakes/mixed-tree.ts';
import { startFaultScene } from '../fakes/scenes/fault-scene.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { figureAtMost, type Row } from '../measure/row.ts';

const MS_PER_MINUTE = 60_000;

export type KillOptions = { seed: number; minutes: number; print(line: string): void };

/** Chooses among kills at every request of every stage; `seed` determines the order. */
export async function backupKills({ seed, minutes, print }: KillOptions): Promise<Row[]> {
  const scene = await startFaultScene();
  const matrix = createFaultMatrix(scene);
  const pod = await matrix.newPod();
  const first = await matrix.newPod();
  const ofBackup = await matrix.callsOf(() => matrix.backedUp(first));
  first.close();
  const original = { snapshot: await matrix.backedUp(pod), tree: fingerprintOf(pod.volume) };
  const ofRestore = await matrix.callsOf(() => matrix.restored(pod, original.snapshot));
  const rounds = VICTIMS.flatMap((victim) => [
    ...ofBackup.map((at) => ({
      name: `backup ${victim}`,
      at,
      run: () => matrix.backup(victim, at),
    })),
    ...ofRestore.map((at) => ({
      name: `restore ${victim}`,
      at,
      run: () => matrix.restore(victim, at, pod, original),
    })),
  ]);
  print(`${rounds.length} kills to choose from, seed ${seed}`);
  const random = createSeededRandom(seed);
  const untilMs = systemClock.monotonicMs() + minutes * MS_PER_MINUTE;
  let done = 0;
  let lost = 0;
  while (rounds.length > 0 && systemClock.monotonicMs() < untilMs) {
    const [round] = rounds.splice(random.int(rounds.length), 1);
    if (round === undefined) break;
    done += 1;
    await round.run().catch((error: unknown) => {
      lost += 1;
      print(`${round.name} ${JSON.stringify(round.at)}: ${error}`);
    });
  }
  print(`${done} kills`);
  pod.close();
  await scene.close();
  return [figureAtMost('kills after which a backup or restore was incomplete', lost, 'kills', 0)];
}
