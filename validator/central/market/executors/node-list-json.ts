/**
 * The node list as JSON bytes. The stable part of each node is cached until the node changes, because encoding takes
 * most of the time of a request.
 */
import { Readable } from 'node:stream';
import type { Database } from '../../platform/database/tables.ts';
import type { Funnel, NearestNode } from './constraints.ts';
import { findExecutors, verdictTimes } from './executor.store.ts';
import { type ResponseOptions, stableFields, volatileFields } from './executor-response.ts';
import type { MarketNode } from './market.store.ts';
import { MAX_PAGE_SIZE } from './node-filters.schemas.ts';

/** Size of the cache: a few thousand nodes. */
const MAX_CACHED_BYTES = 32_000_000;
const COMMA = Buffer.from(',');

/** Members of an explained response other than the list. */
export type ListExplanation = {
  funnel: Funnel;
  nearest: NearestNode[];
  without_location: number | null;
};

type CachedRow = { revision: number; bytes: Uint8Array };

export type NodeListJson = ReturnType<typeof createNodeListJson>;

export function createNodeListJson(db: Database) {
  // Cached bytes by id, oldest first. Summaries are cached separately.
  const full = new Map<string, CachedRow>();
  const summaries = new Map<string, CachedRow>();
  let cachedBytes = 0;
  const encoder = new TextEncoder();

  function keep(cache: Map<string, CachedRow>, id: string, row: CachedRow): void {
    evict(cache, id);
    cache.set(id, row);
    cachedBytes += row.bytes.length;
    while (cachedBytes > MAX_CACHED_BYTES) {
      const larger = full.size > 0 ? full : summaries;
      evict(larger, larger.keys().next().value ?? '');
    }
  }

  function evict(cache: Map<string, CachedRow>, id: string): void {
    cachedBytes -= cache.get(id)?.bytes.length ?? 0;
    cache.delete(id);
  }

  /** Bytes of the stable fields by id, without the closing brace. Encodes nodes whose revision is not cached. */
  async function stableBytesOf(nodes: readonly MarketNode[], isSummary: boolean) {
    const cache = isSummary ? summaries : full;
    const stable = new Map<string, Uint8Array>();
    const missing: string[] = [];
    for (const { id, revision } of nodes) {
      const known = cache.get(id);
      if (known?.revision === revision) stable.set(id, known.bytes);
      else missing.push(id);
    }
    for (const executor of await findExecutors(db, missing)) {
      const { id, revision } = executor;
      // Leaves out the closing brace, because the volatile fields follow.
      const text = JSON.stringify(stableFields(executor, isSummary)).slice(0, -1);
      const bytes = encoder.encode(text);
      stable.set(id, bytes);
      keep(cache, id, { revision, bytes });
    }
    return stable;
  }

  async function rowsOf(
    nodes: readonly MarketNode[],
    options: ResponseOptions,
  ): Promise<Uint8Array[]> {
    const stable = await stableBytesOf(nodes, options.summary);
    // The market's copy lacks these times: every check changes them, and the copy would be read again.
    const checked = await verdictTimes(
      db,
      nodes.map(({ id }) => id),
    );
    const parts: Uint8Array[] = [];
    for (const node of nodes) {
      const bytes = stable.get(node.id);
      if (bytes === undefined) continue;
      if (parts.length > 0) parts.push(COMMA);
      // Joins both parts into one object.
      const volatile = JSON.stringify(
        volatileFields({ ...node, verdict_at: checked.get(node.id) ?? null }, options),
      );
      parts.push(bytes, COMMA, Buffer.from(volatile.slice(1)));
    }
    return parts;
  }

  async function* pages(nodes: readonly MarketNode[], options: ResponseOptions, frame: Frame) {
    for (let from = 0; from < nodes.length; from += MAX_PAGE_SIZE) {
      const rows = await rowsOf(nodes.slice(from, from + MAX_PAGE_SIZE), options);
      yield Buffer.concat([from === 0 ? frame.begin : COMMA, ...rows]);
    }
    yield frame.end;
  }

  return {
    /**
     * Returns a JSON array, or an object with the array and its explanation. Lists longer than one page are streamed to
     * limit memory.
     */
    async listOf(
      nodes: readonly MarketNode[],
      options: ResponseOptions,
      explanation: ListExplanation | null = null,
    ): Promise<Buffer | Readable> {
      const frame = frameFor(explanation);
      if (nodes.length > MAX_PAGE_SIZE) return Readable.from(pages(nodes, options, frame));
      return Buffer.concat([frame.begin, ...(await rowsOf(nodes, options)), frame.end]);
    },
  };
}

/** JSON before and after the rows. */
type Frame = { begin: Buffer; end: Buffer };

function frameFor(explanation: ListExplanation | null): Frame {
  if (explanation === null) return { begin: Buffer.from('['), end: Buffer.from(']') };
  const members = JSON.stringify(explanation).slice(1);
  return { begin: Buffer.from('{"executors":['), end: Buffer.from(`],${members}`) };
}
