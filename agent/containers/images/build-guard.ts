/** Holds the steps of a build to what a pod may take, where the engine's build does not by itself. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { ContainerEngine } from '../engine/engine.ts';
import { BuildFailure } from './build-output.ts';

/** How often the disk use of the step under way is measured. */
export const BUILD_LOOK_MS = 5_000;
const EVENTS_RETRY_MS = 500;

export type BuildGuardPorts = {
  engine: Pick<ContainerEngine, 'events' | 'limitPids' | 'listContainers' | 'containerDiskBytes'>;
  clock: Clock;
  log: Log;
};

export type BuildBounds = { pids: number; diskBytes: number };

/**
 * Bounds the processes of each step as it starts, and rejects with BuildFailure once the steps have written
 * more than they may. Otherwise never settles; ends with `signal`.
 */
export async function guardBuild(
  { engine, clock, log }: BuildGuardPorts,
  labels: Record<string, string>,
  { pids, diskBytes }: BuildBounds,
  signal: AbortSignal,
): Promise<never> {
  /** The most that each step was seen to have written: a step's container is gone when it ends. */
  const written = new Map<string, number>();

  async function limitSteps(): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { action, containerId } of engine.events(labels, signal)) {
          if (action === 'start') await engine.limitPids(containerId, pids);
        }
      } catch (error) {
        log.debug({ detail: messageOf(error) }, 'a step of a build could not be limited');
      }
      await clock.sleep(EVENTS_RETRY_MS, signal).catch(() => undefined);
    }
  }

  async function measure(): Promise<void> {
    for (const { id, status } of await engine.listContainers(labels)) {
      if (status === 'running') await engine.limitPids(id, pids);
      const bytes = (await engine.containerDiskBytes(id)) ?? 0;
      written.set(id, Math.max(bytes, written.get(id) ?? 0));
    }
  }

  void limitSteps();
  for (;;) {
    await clock.sleep(BUILD_LOOK_MS, signal);
    // The build's own end tells of an engine that is away.
    await measure().catch((error: unknown) =>
      log.debug({ detail: messageOf(error) }, 'a build could not be measured'),
    );
    const total = [...written.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (total > diskBytes) {
      throw new BuildFailure(`The build has written ${total} bytes, of at most ${diskBytes}`);
    }
  }
}
