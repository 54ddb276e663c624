/** Limits the processes and the disk use of build steps, which the engine's build API does not support. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { ContainerEngine } from '../engine/engine.ts';
import { BuildFailure } from './build-output.ts';

/** Interval for measuring the disk use of build steps. */
export const BUILD_MEASURE_MS = 5_000;
const EVENTS_RETRY_MS = 500;

export type BuildGuardPorts = {
  engine: Pick<ContainerEngine, 'events' | 'limitPids' | 'listContainers' | 'containerDiskBytes'>;
  clock: Clock;
  log: Log;
};

export type BuildBounds = { pids: number; diskBytes: number };

/**
 * Limits the processes of each step when it starts, and rejects with BuildFailure if the steps exceed the disk limit.
 * Never resolves; rejects when `signal` aborts.
 */
export async function guardBuild(
  { engine, clock, log }: BuildGuardPorts,
  labels: Record<string, string>,
  { pids, diskBytes }: BuildBounds,
  signal: AbortSignal,
): Promise<never> {
  /** Largest measured size of each container, retained because a step's container is removed when the step ends. */
  const written = new Map<string, number>();

  async function limitSteps(): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { action, containerId } of engine.events(labels, signal)) {
          if (action === 'start') await engine.limitPids(containerId, pids);
        }
      } catch (error) {
        log.debug({ detail: messageOf(error) }, 'limiting a build step failed');
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
    await clock.sleep(BUILD_MEASURE_MS, signal);
    // If the engine does not answer, the build itself fails.
    await measure().catch((error: unknown) =>
      log.debug({ detail: messageOf(error) }, 'measuring a build failed'),
    );
    const total = [...written.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (total > diskBytes) {
      throw new BuildFailure(`The build has written ${total} bytes; its limit is ${diskBytes}`);
    }
  }
}
