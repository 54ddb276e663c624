/** Keeps the disk from filling up with images: removes those that this agent has put there and no pod needs. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type ContainerEngine, EngineError } from '../engine/engine.ts';
import type { BuildService } from './build.service.ts';
import type { BuildLogs } from './build-log.ts';
import { removeUnlessUsed } from './build-sweep.ts';
import type { ImageRow, ImageStore } from './image.store.ts';

export const IMAGE_GC_INTERVAL_MS = 60_000;
/** Why a build failed can be read this long after its pod is gone. */
const BUILD_LOG_MS = 24 * 3_600_000;

export function createImageGc(deps: {
  engine: ContainerEngine;
  store: ImageStore;
  builds: Pick<BuildService, 'sweepLeftOvers'>;
  logs: BuildLogs;
  /** Percent of the engine's disk that is in use. */
  diskPercent(): Promise<number>;
  marks: DiskMarks;
  /** Ids and names of the images that pods have or are about to need. */
  usedByPods(): string[];
  /** Keys of the builds whose logs pods still show. */
  buildKeysOfPods(): string[];
  /** Labels of every container of this agent. */
  labels: Record<string, string>;
  onRemoved(bytes: number): void;
  clock: Clock;
  log: Log;
}) {
  const { engine, store, clock, log } = deps;
  const startedMs = clock.now();

  async function inUse(): Promise<InUse> {
    const containers = await engine.listContainers(deps.labels);
    return new Set([...deps.usedByPods(), ...containers.map(({ imageId }) => imageId)]);
  }

  /** What is found under the name of an interrupted pull or build was not there before it: it is ours. */
  async function settle(row: ImageRow): Promise<void> {
    const { reference } = row;
    const found = await engine.inspectImage(reference);
    const nowMs = clock.now();
    if (found === null) store.remove(row);
    else store.finish({ reference, imageId: found.id, sizeBytes: found.sizeBytes, nowMs });
  }

  /** By its name alone: an image that somebody else has named too keeps that name, and its content. */
  async function remove(row: ImageRow): Promise<boolean> {
    const { reference } = row;
    const present = await engine.inspectImage(reference);
    const isSame = present !== null && present.id === row.image_id;
    if (isSame && !(await removeUnlessUsed(engine, reference))) return false;
    store.remove(row);
    if (!isSame) return false;
    log.info({ image: reference, bytes: row.size_bytes }, 'an unused image was removed');
    deps.onRemoved(row.size_bytes);
    return true;
  }

  async function freeSpace(used: InUse): Promise<void> {
    if ((await deps.diskPercent()) < deps.marks.start) return;
    for (const row of removableImages(store.list(), used, clock.now())) {
      const isRemoved = await remove(row);
      if (isRemoved && (await deps.diskPercent()) <= deps.marks.stop) return;
    }
    log.warn('the disk is nearly full, and no unused image is left to remove');
  }

  async function dropOldLogs(): Promise<void> {
    const wanted = new Set(deps.buildKeysOfPods());
    for (const { key, writtenMs } of await deps.logs.list()) {
      const isOld = clock.now() - writtenMs >= BUILD_LOG_MS;
      if (isOld && !wanted.has(key) && !deps.logs.isRunning(key)) await deps.logs.remove(key);
    }
  }

  async function tidy(): Promise<void> {
    await deps.builds.sweepLeftOvers();
    for (const row of store.list()) {
      if (isAbandoned(row, startedMs, clock.now())) await settle(row);
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
      await tidy().catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
        log.debug({ detail: messageOf(error) }, 'images could not be looked after');
      });
    },
  };
}

// MERGED agent/containers/images/image-gc.job.ts: Which images may go when the disk fills up (agent reference 6). Pure.
/** Percent of the disk in use at which removing begins, and at which it ends. */
export type DiskMarks = { start: number; stop: number };

/** What must stay, by the engine's id or by name. */
export type InUse = ReadonlySet<string>;

/** An image just fetched has its pod before long. */
export const MIN_UNUSED_MS = 600_000;
/** A row of an image that was on its way; far beyond any pull. */
export const ABANDONED_MS = 24 * 3_600_000;

/** Longest unused first. */
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

/** Begun and never finished: by an agent that was killed, or by a pull that failed long ago. */
export function isAbandoned(row: ImageRow, startedMs: number, nowMs: number): boolean {
  const isOfEarlierLife = row.last_used_ms < startedMs;
  return row.image_id === null && (isOfEarlierLife || nowMs - row.last_used_ms >= ABANDONED_MS);
}
