/** Removes leftovers of builds: containers of steps and intermediate images. */
import type { Clock } from '#shared/runtime/clock.ts';
import { type ContainerEngine, EngineError } from '../engine/engine.ts';

/**
 * Maximum number of rounds. Removing an image makes its parent removable in the next round. A round may also wait for
 * the engine to end a step.
 */
const MAX_ROUNDS = 12;
const PAUSE_MS = 250;

/** Removes containers and unused images with `labels`, which must not match a running build. */
export async function sweepBuild(
  engine: Pick<
    ContainerEngine,
    'listContainers' | 'removeContainer' | 'listImages' | 'removeImage'
  >,
  labels: Record<string, string>,
  clock: Clock,
): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    for (const { id } of await engine.listContainers(labels)) {
      // A conflict means that the engine is already removing the container.
      await orConflict(engine.removeContainer(id));
    }
    const unused = await engine.listImages({ labels, unused: true });
    if (unused.length === 0) return;
    let removed = 0;
    for (const id of unused) if (await removeUnlessUsed(engine, id)) removed += 1;
    if (removed === 0) await clock.sleep(PAUSE_MS);
  }
}

/** Removes built images that no container uses, including named ones. Returns their number. */
export async function removeBuilt(
  engine: Pick<ContainerEngine, 'listImages' | 'removeImage'>,
  labels: Record<string, string>,
): Promise<number> {
  let total = 0;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    let removed = 0;
    for (const id of await engine.listImages({ labels })) {
      if (await removeUnlessUsed(engine, id)) removed += 1;
    }
    if (removed === 0) break;
    total += removed;
  }
  return total;
}

/** Returns false if a container uses the image, or another image is based on it. */
export async function removeUnlessUsed(
  engine: Pick<ContainerEngine, 'removeImage'>,
  reference: string,
): Promise<boolean> {
  return orConflict(engine.removeImage(reference));
}

async function orConflict(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'conflict') return false;
    throw error;
  }
}
