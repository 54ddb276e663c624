/** The newest weights against the true quality of the hosts. */
import { z } from 'zod';
import type { Database } from '../../central/platform/database/tables.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { lastEpoch } from '../../weights/epoch.store.ts';
import { rateOf, type WeightPolicy } from '../../weights/weight-policy.ts';
import { type HostTally, qualityOf } from './host-tally.ts';
import type { WeighedHost } from './report.ts';

const Payload = z.object({ uids: z.array(z.int()), weights: z.array(z.number()) });

export type WeightSources = {
  db: Database;
  store: EvidenceStore;
  policy: WeightPolicy;
  tally: HostTally;
  nowMs: number;
};

/** Returns each host with its share of the weight of all hosts; empty before the first epoch. */
export async function weighHosts(sources: WeightSources): Promise<WeighedHost[]> {
  const { db, store, policy, tally, nowMs } = sources;
  const shares = await weightShares(store);
  if (shares === null) return [];
  const executors = await db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select(['executors.id', 'providers.hotkey'])
    .orderBy('executors.id')
    .execute();
  const hosts = executors.flatMap(({ id, hotkey }) => {
    const host = tally.get(id);
    if (host === undefined) return [];
    const value = host.gpus * rateOf(policy, host.gpu);
    return [{ host, value, weight: shares.get(hotkey) ?? 0 }];
  });
  const weight = hosts.reduce((sum, host) => sum + host.weight, 0);
  const value = hosts.reduce((sum, host) => sum + host.value, 0);
  return hosts.map(({ host, ...own }) => ({
    gpu: host.gpu,
    cheat: host.cheat,
    quality: qualityOf(host, nowMs),
    weight_share: weight === 0 ? 0 : own.weight / weight,
    value_share: value === 0 ? 0 : own.value / value,
  }));
}

/** Weights of the newest epoch by hotkey; null before the first epoch. */
async function weightShares(store: EvidenceStore): Promise<Map<string, number> | null> {
  const epoch = await lastEpoch(store);
  if (epoch === undefined) return null;
  const { uids, weights } = Payload.parse(JSON.parse(epoch.payload_json));
  const neurons = await store.selectFrom('neurons').select(['uid', 'hotkey']).execute();
  const hotkeys = new Map(neurons.map(({ uid, hotkey }) => [uid, hotkey]));
  return new Map(uids.map((uid, index) => [hotkeys.get(uid) ?? '', weights[index] ?? 0]));
}
