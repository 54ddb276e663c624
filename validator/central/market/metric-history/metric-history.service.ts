/** Reads the history of pods and nodes: the stored part, and the newest samples from the agent. */
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { createAgentCache } from '../executors/agent-cache.ts';
import { type ExecutorEntry, findExecutor } from '../executors/executor.service.ts';
import { type Page, readPages, samplesByOwner } from './collect.ts';
import { decodeArchive, decodeRecent } from './history-codec.ts';
import { type Range, rangeOf } from './history-range.ts';
import { historyResponse } from './history-response.ts';
import type {
  HistoryQuery,
  MetricHistory,
  NodeMetricHistory,
  PodMetricHistory,
} from './metric-history.schemas.ts';
import { ARCHIVE, findCursor, RECENT, readParts } from './metric-history.store.ts';
import {
  allTens,
  NOTHING_ARCHIVED,
  NOTHING_RECENT,
  RESOLUTIONS,
  type Recent,
  withSamples,
} from './retained.ts';
import { rowsBefore, rowsFrom, type Tier } from './tier.ts';

export { deleteHistoryOf, enterCollections } from './metric-history.store.ts';

const [SAMPLES, MINUTES] = RESOLUTIONS;
/** Age of the newest sample above which a node counts as not answering. */
const STALE_AFTER_MS = 60_000;
/**
 * Cached pages of agents: however many requests clients send, the central API calls an agent at most once in five
 * seconds.
 */
type Tail = { pages: Page[] };

type Facts = {
  /** False if the agent has no newer samples, because the pod has ended or the node was removed. */
  isLive: boolean;
  simulated: boolean;
  /** Time since which the agent takes samples; null if it takes none, because the pod does not run. */
  sampledSinceMs: number | null;
};

export type MetricHistories = ReturnType<typeof createMetricHistories>;

export function createMetricHistories(deps: { db: Database; clock: Clock; agents: Agents }) {
  const { db, clock, agents } = deps;
  const readTail = createAgentCache<Tail>(clock);

  /** Returns the samples after the last collection; null if the agent does not answer. */
  async function tailOf(executorId: string): Promise<Page[] | null> {
    const cursor = await findCursor(db, executorId);
    const { last, isLive } = await readTail(executorId, () =>
      readPages(agents.clientOf(executorId), clock, cursor),
    );
    return isLive ? (last?.value.pages ?? null) : null;
  }

  async function recentOf(ownerId: string): Promise<Recent> {
    const bytes = (await readParts(db, [ownerId], RECENT)).get(ownerId);
    return bytes === undefined ? NOTHING_RECENT : decodeRecent(bytes).catch(() => NOTHING_RECENT);
  }

  async function rowsOf(
    ownerId: string,
    recent: Recent,
    { resolution, first, end }: Range,
  ): Promise<{ tier: Tier; gpus: readonly string[] }> {
    const cut = (tier: Tier) => rowsBefore(rowsFrom(tier, first), end);
    const { gpus } = recent;
    if (resolution === SAMPLES.seconds) return { tier: cut(recent.samples), gpus };
    if (resolution === MINUTES.seconds) return { tier: cut(recent.minutes), gpus };
    const bytes = (await readParts(db, [ownerId], ARCHIVE)).get(ownerId);
    const archive =
      bytes === undefined
        ? NOTHING_ARCHIVED
        : await decodeArchive(bytes).catch(() => NOTHING_ARCHIVED);
    const all = allTens(recent, archive);
    return { tier: cut(all.tens), gpus: all.gpus };
  }

  async function read(
    ids: { ownerId: string; executorId: string; podId: string | null },
    query: HistoryQuery,
    facts: Facts,
  ): Promise<MetricHistory> {
    const { ownerId, executorId, podId } = ids;
    const range = rangeOf(query, clock.now());
    // Read before the stored rows, so that samples that are collected in between are in both, not in neither.
    const tail = facts.isLive ? await tailOf(executorId) : [];
    const stored = await recentOf(ownerId);
    const podIds = new Set(podId === null ? [] : [podId]);
    const newer = samplesByOwner(tail ?? [], executorId, podIds).get(ownerId) ?? [];
    const recent = newer.reduce(withSamples, stored);
    const newestMs = (recent.samples.at.at(-1) ?? 0) * SAMPLE_INTERVAL_MS;
    const { sampledSinceMs: sinceMs } = facts;
    const isOld = sinceMs !== null && clock.now() - Math.max(newestMs, sinceMs) > STALE_AFTER_MS;
    return historyResponse({
      range,
      ...(await rowsOf(ownerId, recent, range)),
      simulated: facts.simulated,
      stale: facts.isLive && (tail === null || isOld),
      perGpu: query.per_gpu ?? false,
    });
  }

  return {
    /**
     * Returns the history of a pod. The caller has checked that the pod belongs to the account. The history is
     * available until 30 days after the pod's end.
     */
    async ofPod(pod: Pod, query: HistoryQuery): Promise<PodMetricHistory> {
      const { id: podId, executor_id: executorId } = pod;
      const executor = await findExecutor(db, executorId);
      const facts = {
        isLive: pod.ended_at === null,
        simulated: executor?.simulated === 1,
        sampledSinceMs: pod.state === 'running' ? pod.first_running_at : null,
      };
      const history = await read({ ownerId: podId, executorId, podId }, query, facts);
      return { pod_id: podId, ...history };
    },

    /** Returns the history of a node. The caller has checked that the node belongs to the provider. */
    async ofNode(executor: ExecutorEntry, query: HistoryQuery): Promise<NodeMetricHistory> {
      const { id, state, inventory_json: inventory } = executor;
      // The agent of an unchecked node is not called, because its address is not verified.
      const isLive = state !== 'removed' && inventory !== null;
      const facts = { isLive, simulated: executor.simulated === 1, sampledSinceMs: 0 };
      const history = await read({ ownerId: id, executorId: id, podId: null }, query, facts);
      // UUIDs are shown only to the renter of a GPU.
      const gpus = history.gpus.map((gpu) => ({ ...gpu, uuid: null }));
      return { executor_id: id, ...history, gpus };
    },
  };
}
