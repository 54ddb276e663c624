/** Observes the containers of all pods at the engine, independently of what agents and central API report. */
import { systemClock } from '#shared/runtime/clock.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { ChaosWorld } from './chaos-world.ts';

const OBSERVE_EVERY_MS = 1_000;

/** Observations of a pod's container, in monotonic time. */
export type Sighting = {
  /** Last observation before the container first ran. */
  notBeforeMs: number;
  /** First observation after the container last ran; null while it runs, or while the engine does not answer. */
  notAfterMs: number | null;
  /** Observations of the running container. */
  runningAtMs: number[];
};

export type Observer = ReturnType<typeof observeContainers>;

export function observeContainers({ engine }: Pick<ChaosWorld, 'engine'>) {
  const ending = new AbortController();
  const sightings = new Map<string, Sighting>();
  let previousMs = systemClock.monotonicMs();
  const done = loop().catch(() => undefined);

  async function loop(): Promise<void> {
    for (;;) {
      await observe();
      await systemClock.sleep(OBSERVE_EVERY_MS, ending.signal);
    }
  }

  async function observe(): Promise<void> {
    const containers = await engine.listContainers({ [LABELS.managed]: '1' }).catch(() => null);
    // While the engine does not answer, containers may still run.
    if (containers === null) return;
    const nowMs = systemClock.monotonicMs();
    const running = new Set(
      containers
        .filter(({ status }) => status === 'running')
        .flatMap(({ labels }) => labels[LABELS.pod] ?? []),
    );
    for (const id of running) {
      const known = sightings.get(id);
      if (known === undefined) {
        sightings.set(id, { notBeforeMs: previousMs, notAfterMs: null, runningAtMs: [nowMs] });
        continue;
      }
      known.notAfterMs = null;
      known.runningAtMs.push(nowMs);
    }
    for (const [id, known] of sightings) {
      if (!running.has(id)) known.notAfterMs ??= nowMs;
    }
    previousMs = nowMs;
  }

  return {
    of: (podId: string) => sightings.get(podId),
    async stop(): Promise<void> {
      ending.abort();
      await done;
    },
  };
}
