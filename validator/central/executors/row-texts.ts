/** The node list as JSON text. What lasts of a row is kept until its node changes: making it takes most of a listing. */
import { Readable } from 'node:stream';
import type { Database } from '../db/tables.ts';
import { lastingMembers, passingMembers, type RowOptions } from './executor.row.ts';
import { MAX_PAGE_SIZE } from './executor.schemas.ts';
import { findExecutors } from './executor.store.ts';
import type { MarketNode } from './market.store.ts';

/** Characters of text that are kept: some thousands of rows. */
const MOST_KEPT = 32_000_000;

type Kept = { revision: number; text: string };

export type RowTexts = ReturnType<typeof createRowTexts>;

export function createRowTexts(db: Database) {
  // By id, oldest first; summaries apart, for a node may be asked for in both forms.
  const full = new Map<string, Kept>();
  const summaries = new Map<string, Kept>();
  let keptChars = 0;

  function keep(cache: Map<string, Kept>, id: string, row: Kept): void {
    forget(cache, id);
    cache.set(id, row);
    keptChars += row.text.length;
    while (keptChars > MOST_KEPT) {
      const larger = full.size > 0 ? full : summaries;
      forget(larger, larger.keys().next().value ?? '');
    }
  }

  function forget(cache: Map<string, Kept>, id: string): void {
    keptChars -= cache.get(id)?.text.length ?? 0;
    cache.delete(id);
  }

  /** As they are now, made anew where the one kept is not of that revision. */
  async function lastingTexts(nodes: readonly MarketNode[], isSummary: boolean) {
    const cache = isSummary ? summaries : full;
    const texts = new Map<string, string>();
    const missing: string[] = [];
    for (const { id, revision } of nodes) {
      const known = cache.get(id);
      if (known?.revision === revision) texts.set(id, known.text);
      else missing.push(id);
    }
    for (const executor of await findExecutors(db, missing)) {
      const { id, revision } = executor;
      // Left open: what passes follows.
      const text = JSON.stringify(lastingMembers(executor, isSummary)).slice(0, -1);
      texts.set(id, text);
      keep(cache, id, { revision, text });
    }
    return texts;
  }

  async function rowsOf(nodes: readonly MarketNode[], options: RowOptions): Promise<string> {
    const texts = await lastingTexts(nodes, options.summary);
    const rows = nodes.flatMap((node) => {
      const lasting = texts.get(node.id);
      return lasting === undefined ? [] : [joined(lasting, passingMembers(node, options))];
    });
    return rows.join(',');
  }

  async function* pages(nodes: readonly MarketNode[], options: RowOptions) {
    for (let from = 0; from < nodes.length; from += MAX_PAGE_SIZE) {
      const rows = await rowsOf(nodes.slice(from, from + MAX_PAGE_SIZE), options);
      yield `${from === 0 ? '[' : ','}${rows}`;
    }
    yield ']';
  }

  return {
    /** A JSON array; of more than a page it comes in parts, for a whole market is too much to hold at once. */
    async listOf(nodes: readonly MarketNode[], options: RowOptions): Promise<string | Readable> {
      if (nodes.length > MAX_PAGE_SIZE) return Readable.from(pages(nodes, options));
      return `[${await rowsOf(nodes, options)}]`;
    },
  };
}

/** One object of the members of both. */
function joined(lasting: string, passing: object): string {
  return `${lasting},${JSON.stringify(passing).slice(1)}`;
}
