/** Searches an account's pods, volumes and templates, and the offered nodes, by id, name or address. */
import { isIP } from 'node:net';
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Listed, MarketView } from '../executors/executor.service.ts';
import { findExecutors, findOnMarket, idsAt } from '../executors/executor.service.ts';
import { huidOf, machineNameOf } from '../executors/executor-response.ts';
import { podStateOf, wireStatus } from '../pods/pod.state.ts';
import type { SearchQuery, SearchResults } from './search.schemas.ts';
import { type SearchText, searchPods, searchTemplates, searchVolumes } from './search.store.ts';

export type SearchDeps = { db: Database; clock: Clock; view: MarketView };

/** Beginning of a readable name of a node. */
const HUID = /^[a-z]+-[a-z]*(?:-[0-9a-f]{0,2})?$/;
/** Number of nodes that are compared before other work of the process may run. */
const BATCH = 1_000;

export type Search = ReturnType<typeof createSearch>;

export function createSearch({ db, clock, view }: SearchDeps) {
  const yieldToEventLoop = createEventLoopYield(clock);
  /** Readable names of nodes in the market view: a name is a hash, and hashing all takes over 100 ms. */
  const names = new WeakMap<Listed, string>();

  function nameOf(node: Listed): string {
    const name = names.get(node) ?? huidOf(node.id);
    names.set(node, name);
    return name;
  }

  /** Compares the names of all nodes with free GPUs, in batches, because the first search computes the names. */
  async function nodesNamed(text: string, limit: number): Promise<string[]> {
    // Copied, because the array changes during the waits.
    const nodes = (await view.offers()).nodes.slice();
    const found: string[] = [];
    for (let from = 0; from < nodes.length && found.length < limit; from += BATCH) {
      const batch = nodes.slice(from, from + BATCH);
      found.push(...batch.filter((node) => nameOf(node).startsWith(text)).map(({ id }) => id));
      await yieldToEventLoop();
    }
    return found.slice(0, limit);
  }

  async function nodeIds({ text, limit }: SearchText): Promise<string[]> {
    if (isIP(text) !== 0) return idsAt(db, text, limit);
    if (HUID.test(text)) return nodesNamed(text, limit);
    return [text];
  }

  async function nodes(search: SearchText): Promise<SearchResults['nodes']> {
    const found = await findExecutors(db, await nodeIds(search));
    const offered = await Promise.all(found.map(({ id }) => findOnMarket(db, id)));
    return found
      .filter((_, at) => offered[at] !== undefined)
      .map((node) => ({
        id: node.id,
        huid: huidOf(node.id),
        machine_name: machineNameOf(node),
        executor_ip_address: node.ip_address,
      }));
  }

  return async (accountId: string, { q, limit }: SearchQuery): Promise<SearchResults> => {
    const search = { text: q.toLowerCase(), limit };
    const pods = await searchPods(db, accountId, search);
    return {
      pods: pods.map(({ id, pod_name, state, executor_id }) => ({
        id,
        pod_name,
        status: wireStatus(podStateOf(state)),
        executor_id,
      })),
      volumes: await searchVolumes(db, accountId, search),
      templates: await searchTemplates(db, accountId, search),
      nodes: await nodes(search),
    };
  };
}
