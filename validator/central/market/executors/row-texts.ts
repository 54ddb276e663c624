/**
 * The node list as JSON, in the bytes that are sent. What lasts of a row is kept until its node changes: making it
 * takes most of a listing, and turning a page of text into bytes most of the rest.
 */
import { Readable } from 'node:stream';
import type { Database } from '../../platform/database/tables.ts';
import { lastingMembers, passingMembers, type RowOptions } from './executor.row.ts';
import { MAX_PAGE_SIZE } from './executor.schemas.ts';
import { findExecutors } from './executor.store.ts';
import type { MarketNode } from './market.store.ts';

/** Of rows that are kept: some thousands of them. */
const MOST_KEPT_BYTES = 32_000_000;
const COMMA = Buffer.from(',');
const BEGIN = Buffer.from('[');
const END = Buffer.from(']');

type Kept = { revision: number; bytes: Uint8Array };

export type RowTexts = ReturnType<typeof createRowTexts>;

export function createRowTexts(db: Database) {
  // By id, oldest first; summaries apart, for a node may be asked for in both forms.
  const full = new Map<string, Kept>();
  const summaries = new Map<string, Kept>();
  let keptBytes = 0;
  const encoder = new TextEncoder();

  function keep(cache: Map<string, Kept>, id: string, row: Kept): void {
    forget(cache, id);
    cache.set(id, row);
    keptBytes += row.bytes.length;
    while (keptBytes > MOST_KEPT_BYTES) {
      const larger = full.size > 0 ? full : summaries;
      forget(larger, larger.keys().next().value ?? '');
    }
  }

  function forget(cache: Map<string, Kept>, id: string): void {
    keptBytes -= cache.get(id)?.bytes.length ?? 0;
    cache.delete(id);
  }

  /** As they are now, made anew where the one kept is not of that revision. */
  async function lastingOf(nodes: readonly MarketNode[], isSummary: boolean) {
    const cache = isSummary ? summaries : full;
    const lasting = new Map<string, Uint8Array>();
    const missing: string[] = [];
    for (const { id, revision } of nodes) {
      const known = cache.get(id);
      if (known?.revision === revision) lasting.set(id, known.bytes);
      else missing.push(id);
    }
    for (const executor of await findExecutors(db, missing)) {
      const { id, revision } = executor;
      // Left open: what passes follows.
      const text = JSON.stringify(lastingMembers(executor, isSummary)).slice(0, -1);
      const bytes = encoder.encode(text);
      lasting.set(id, bytes);
      keep(cache, id, { revision, bytes });
    }
    return lasting;
  }

  async function rowsOf(nodes: readonly MarketNode[], options: RowOptions): Promise<Uint8Array[]> {
    const lasting = await lastingOf(nodes, options.summary);
    const parts: Uint8Array[] = [];
    for (const node of nodes) {
      const bytes = lasting.get(node.id);
      if (bytes === undefined) continue;
      if (parts.length > 0) parts.push(COMMA);
      // One object of the members of both.
      const passing = JSON.stringify(passingMembers(node, options));
      parts.push(bytes, COMMA, Buffer.from(passing.slice(1)));
    }
    return parts;
  }

  async function* pages(nodes: readonly MarketNode[], options: RowOptions) {
    for (let from = 0; from < nodes.length; from += MAX_PAGE_SIZE) {
      const rows = await rowsOf(nodes.slice(from, from + MAX_PAGE_SIZE), options);
      yield Buffer.concat([from === 0 ? BEGIN : COMMA, ...rows]);
    }
    yield END;
  }

  return {
    /** A JSON array; of more than a page it comes in parts, for a whole market is too much to hold at once. */
    async listOf(nodes: readonly MarketNode[], options: RowOptions): Promise<Buffer | Readable> {
      if (nodes.length > MAX_PAGE_SIZE) return Readable.from(pages(nodes, options));
      return Buffer.concat([BEGIN, ...(await rowsOf(nodes, options)), END]);
    },
  };
}
