/** Collects the samples of executors from their agents and adds them to the stored history. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { MAX_RETAINED_TICKS, type SampleHistory } from '#shared/api/agent/metric-history.ts';
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { decodeArchive, decodeRecent, encodeArchive, encodeRecent } from './history-codec.ts';
import {
  ARCHIVE,
  type Claim,
  type Cursor,
  listCollectedPods,
  type Outcome,
  type PartRow,
  RECENT,
  readParts,
  releaseCollections,
} from './metric-history.store.ts';
import {
  archived,
  type NewSamples,
  NOTHING_ARCHIVED,
  NOTHING_RECENT,
  type Recent,
  unarchivedRows,
  withSamples,
} from './retained.ts';

/** Interval between two collections from an executor. */
export const COLLECT_INTERVAL_MS = 300_000;
/** Longest pause after failures; an agent retains the samples of an hour. */
const MAX_PAUSE_MS = 1_800_000;
/** Maximum number of pages per collection, enough for a full hour. The next collection reads the remaining pages. */
const MAX_PAGES = 7;
/** Time after the end of a pod during which its last samples are accepted. */
const ENDED_MS = 7_200_000;
/**
 * Largest deviation of an agent's clock, in intervals, that counts as transmission time. A larger deviation shifts the
 * agent's samples.
 */
const MAX_DEVIATION = 1;
const DAY_MS = 86_400_000;
/**
 * Smallest number of ten-minute rows at which a series is archived: 48 rows, which are 8 hours. The number differs
 * between owners, up to 95 rows, so that not all series are due at once.
 */
const FIRST_ARCHIVED_ROWS = 48;

export type CollectDeps = { db: Database; clock: Clock; log: Log; agents: Agents };

/** Samples of one page, with their conversion to times of the central API. */
export type Page = Pick<SampleHistory, 'series'> & { toAt: (tick: number) => number };

export function createCollector({ db, clock, log, agents }: CollectDeps) {
  async function recentOf(bytes: Uint8Array | undefined, ownerId: string): Promise<Recent> {
    if (bytes === undefined) return NOTHING_RECENT;
    try {
      return await decodeRecent(bytes);
    } catch (error) {
      log.error(
        { owner_id: ownerId, err: error },
        'stored history of metrics is damaged, a new one begins',
      );
      return NOTHING_RECENT;
    }
  }

  /** Returns the rows to write for an owner. */
  async function rowsFor(
    ownerId: string,
    stored: Uint8Array | undefined,
    samples: readonly NewSamples[],
  ): Promise<PartRow[]> {
    const before = await recentOf(stored, ownerId);
    const recent = samples.reduce(withSamples, before);
    const newestAt = recent.samples.at.at(-1);
    if (recent === before || newestAt === undefined) return [];
    const newestDay = Math.floor((newestAt * SAMPLE_INTERVAL_MS) / DAY_MS);
    const row = { ownerId, newestDay };
    if (unarchivedRows(recent) < archivedRows(ownerId)) {
      return [{ ...row, part: RECENT, data: await encodeRecent(recent) }];
    }
    const old = (await readParts(db, [ownerId], ARCHIVE)).get(ownerId);
    const known = old === undefined ? NOTHING_ARCHIVED : await decodeArchive(old).catch(() => null);
    const moved = archived(recent, known ?? NOTHING_ARCHIVED);
    return [
      { ...row, part: RECENT, data: await encodeRecent(moved.recent) },
      { ...row, part: ARCHIVE, data: await encodeArchive(moved.archive) },
    ];
  }

  function failed(claim: Claim, error: unknown): Outcome {
    log.debug({ executor_id: claim.executorId, err: error }, 'samples were not collected');
    const failures = claim.failures + 1;
    const pauseMs = Math.min(COLLECT_INTERVAL_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
    return { claim, dueAtMs: clock.now() + pauseMs, failures, cursor: claim.cursor, rows: [] };
  }

  async function read(claim: Claim): Promise<Read | Outcome> {
    try {
      return {
        claim,
        ...(await readPages(agents.clientOf(claim.executorId), clock, claim.cursor)),
      };
    } catch (error) {
      return failed(claim, error);
    }
  }

  /** Adds the samples to the stored history of their owners. Damaged samples fail only this executor. */
  async function merge({ claim, cursor, byOwner }: Merge, stored: Parts): Promise<Outcome> {
    try {
      const rows: PartRow[] = [];
      for (const [ownerId, samples] of byOwner) {
        rows.push(...(await rowsFor(ownerId, stored.get(ownerId), samples)));
      }
      return { claim, dueAtMs: clock.now() + COLLECT_INTERVAL_MS, failures: 0, cursor, rows };
    } catch (error) {
      return failed(claim, error);
    }
  }

  async function mergeAll(reads: readonly Read[]): Promise<Outcome[]> {
    const ids = reads.map(({ claim }) => claim.executorId);
    const podIds = await listCollectedPods(db, ids, clock.now() - ENDED_MS);
    const merges = reads.map(({ claim, pages, cursor }) => {
      const pods = podIds.get(claim.executorId) ?? new Set();
      return { claim, cursor, byOwner: samplesByOwner(pages, claim.executorId, pods) };
    });
    const owners = merges.flatMap(({ byOwner }) => [...byOwner.keys()]);
    const stored = await readParts(db, owners, RECENT);
    return Promise.all(merges.map((each) => merge(each, stored)));
  }

  return {
    /**
     * Collects from claimed executors, and stores all outcomes in one transaction. An executor whose agent does not
     * answer is due again later. If the database fails, the claims end by themselves.
     */
    async collect(claims: readonly Claim[]): Promise<void> {
      const found = await Promise.all(claims.map(read));
      const outcomes = [
        ...found.flatMap((each) => ('pages' in each ? [] : each)),
        ...(await mergeAll(found.flatMap((each) => ('pages' in each ? each : [])))),
      ];
      await db.transaction().execute((tx) => releaseCollections(tx, outcomes));
    },
  };
}

type Read = { claim: Claim; pages: Page[]; cursor: Cursor | null };
type Merge = Pick<Read, 'claim' | 'cursor'> & { byOwner: ReadonlyMap<string, NewSamples[]> };
type Parts = ReadonlyMap<string, Uint8Array>;

/** Reads the samples after `known`. Rejects with ApiError if the agent does not answer. */
export async function readPages(
  client: AgentClient,
  clock: Clock,
  known: Cursor | null,
): Promise<{ pages: Page[]; cursor: Cursor | null }> {
  const pages: Page[] = [];
  let cursor = known;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = cursor === null ? {} : { epoch: cursor.epoch, after: cursor.tick };
    const answer = await client.sampleHistory(query);
    const next = nextCursor(cursor, answer, clock.now());
    if (next === null) break;
    pages.push(pageOf(answer, next.shift));
    const isStuck = cursor?.epoch === next.epoch && cursor.tick === next.tick;
    cursor = next;
    if (!answer.more || isStuck) break;
  }
  return { pages, cursor };
}

/** Leaves out ticks that the agent cannot have: ticks newer than its newest, and ticks older than it retains. */
function pageOf({ series, newest }: SampleHistory, shift: number): Page {
  const last = newest?.tick ?? 0;
  return {
    series: series.map(({ rows, ...each }) => ({
      ...each,
      rows: rows.filter(({ tick }) => tick <= last && tick > last - 2 * MAX_RETAINED_TICKS),
    })),
    toAt: (tick) => tick + shift,
  };
}

/**
 * Position after a response that arrived at `nowMs`; null if the agent has no sample. The agent's wall clock is not
 * used, because the age of its newest sample and the constant distance of ticks suffice.
 */
export function nextCursor(
  known: Cursor | null,
  { epoch, newest, series }: SampleHistory,
  nowMs: number,
): Cursor | null {
  if (newest === null) return null;
  const measured = Math.floor((nowMs - newest.age_ms) / SAMPLE_INTERVAL_MS) - newest.tick;
  const isSameRun = known?.epoch === epoch;
  const isClose = isSameRun && Math.abs(measured - known.shift) <= MAX_DEVIATION;
  const last = Math.max(-1, ...series.flatMap(({ rows }) => rows.map(({ tick }) => tick)));
  const from = isSameRun ? known.tick : -1;
  const tick = Math.min(Math.max(from, last), newest.tick);
  return { epoch, tick, shift: isClose ? known.shift : measured };
}

/** Samples by pod, and by executor for the host. Series of other pods are ignored. */
export function samplesByOwner(
  pages: readonly Page[],
  executorId: string,
  podIds: ReadonlySet<string>,
): Map<string, NewSamples[]> {
  const byOwner = new Map<string, NewSamples[]>();
  for (const { series, toAt } of pages) {
    for (const each of series) {
      const ownerId = each.pod_id ?? executorId;
      if (each.pod_id !== null && !podIds.has(each.pod_id)) continue;
      byOwner.set(ownerId, [...(byOwner.get(ownerId) ?? []), { series: each, toAt }]);
    }
  }
  return byOwner;
}

function archivedRows(ownerId: string): number {
  const digit = Number.parseInt(ownerId.slice(0, 2), 16);
  return FIRST_ARCHIVED_ROWS + (Number.isNaN(digit) ? 0 : Math.floor((digit * 48) / 256));
}
