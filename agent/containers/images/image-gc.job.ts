/** Removes images that this agent pulled or built and no pod needs, when the disk fills up. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type ContainerEngine, EngineError } from '../engine/engine.ts';
import type { BuildService } from './build.service.ts';
import type { BuildLogs } from './build-log.ts';
import { removeUnlessUsed } from './build-sweep.ts';
import type { ImageRow, ImageStore } from './image.store.ts';

export const IMAGE_GC_INTERVAL_MS = 60_000;
/** Time for which build logs are retained after their pod was removed. */
const BUILD_LOG_MS = 24 * 3_600_000;

export function createImageGc(deps: {
  engine: ContainerEngine;
  store: ImageStore;
  builds: Pick<BuildService, 'sweepLeftOvers'>;
  logs: BuildLogs;
  /** Percent of the engine's disk that is in use. */
  diskPercent(): Promise<number>;
  marks: DiskMarks;
  /** Ids and names of images that pods use or are about to use. */
  usedByPods(): string[];
  /** Keys of builds whose pods exist. */
  buildKeysOfPods(): string[];
  /** Labels of all containers of this agent. */
  labels: Record<string, string>;
  onRemoved(bytes: number): void;
  clock: Clock;
  trust: Pick<ClockTrust, 'isSuspect'>;
  log: Log;
}) {
  const { engine, store, clock, log } = deps;
  const startedMs = clock.now();

  async function inUse(): Promise<InUse> {
    const containers = await engine.listContainers(deps.labels);
    return new Set([...deps.usedByPods(), ...containers.map(({ imageId }) => imageId)]);
  }

  /**
   * Completes the row of an interrupted pull or build. The name was not in use before the row was written, so an image
   * that has it is the agent's.
   */
  async function completeRow(row: ImageRow): Promise<void> {
    const { reference } = row;
    const found = await engine.inspectImage(reference);
    const nowMs = clock.now();
    if (found === null) store.remove(row);
    else store.finish({ reference, imageId: found.id, sizeBytes: found.sizeBytes, nowMs });
  }

  /** Removes the image's name only: the content remains if the image has another name. */
  async function remove(row: ImageRow): Promise<boolean> {
    const { reference } = row;
    const present = await engine.inspectImage(reference);
    const isSame = present !== null && present.id === row.image_id;
    if (isSame && !(await removeUnlessUsed(engine, reference))) return false;
    store.remove(row);
    if (!isSame) return false;
    log.info({ image: reference, bytes: row.size_bytes }, 'removed an unused image');
    deps.onRemoved(row.size_bytes);
    return true;
  }

  async function freeSpace(used: InUse): Promise<void> {
    if ((await deps.diskPercent()) < deps.marks.start) return;
    for (const row of removableImages(store.list(), used, clock.now())) {
      const isRemoved = await remove(row);
      if (isRemoved && (await deps.diskPercent()) <= deps.marks.stop) return;
    }
    log.warn('disk is nearly full and no unused image is left to remove');
  }

  async function dropOldLogs(): Promise<void> {
    const wanted = new Set(deps.buildKeysOfPods());
    for (const { key, writtenMs } of await deps.logs.list()) {
      const isOld = clock.now() - writtenMs >= BUILD_LOG_MS;
      if (isOld && !wanted.has(key) && !deps.logs.isRunning(key)) await deps.logs.remove(key);
    }
  }

  async function collect(): Promise<void> {
    await deps.builds.sweepLeftOvers();
    for (const row of store.list()) {
      if (isAbandoned(row, startedMs, clock.now())) await completeRow(row);
    }
    const used = await inUse();
    for (const row of store.list()) {
      if (isUsed(row, used)) store.touch(row.reference, clock.now());
    }
    await freeSpace(used);
    await dropOldLogs();
  }

  return {
    async runOnce(): Promise<void> {
      if (deps.trust.isSuspect()) return;
      await collect().catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
        log.debug({ detail: messageOf(error) }, 'image clean-up failed');
      });
    },
  };
}

/** Percent of disk use at which removal starts and stops. */
export type DiskMarks = { start: number; stop: number };

/** Ids and names of images that must not be removed. */
export type InUse = ReadonlySet<string>;

/** Time for which a fetched image is kept, because its pod may not have its container yet. */
export const MIN_UNUSED_MS = 600_000;
/** Age at which the row of an unfinished pull counts as abandoned; exceeds the duration of any pull. */
export const ABANDONED_MS = 24 * 3_600_000;

/** Images that may be removed, least recently used first. */
export function removableImages(
  rows: readonly ImageRow[],
  inUse: InUse,
  nowMs: number,
): ImageRow[] {
  return rows
    .filter((row) => row.image_id !== null && !isUsed(row, inUse))
    .filter((row) => nowMs - row.last_used_ms >= MIN_UNUSED_MS)
    .toSorted((a, b) => a.last_used_ms - b.last_used_ms);
}

export function isUsed({ image_id, reference }: ImageRow, inUse: InUse): boolean {
  return inUse.has(reference) || (image_id !== null && inUse.has(image_id));
}

/** True for a row that a killed agent or a failed pull left unfinished. */
export function isAbandoned(row: ImageRow, startedMs: number, nowMs: number): boolean {
  const isOfEarlierProcess = row.last_used_ms < startedMs;
  return row.image_id === null && (isOfEarlierProcess || nowMs - row.last_used_ms >= ABANDONED_MS);
}
