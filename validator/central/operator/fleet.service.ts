/** Nodes and providers for operators: the pod on each GPU, and the free GPUs that cannot be rented. */
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { rentalObstacles } from '../market/executors/executor.service.ts';
import {
  gpuTotalOf,
  huidOf,
  machineNameOf,
  minimumGpusOf,
} from '../market/executors/executor-response.ts';
import { postedOf } from '../money/ledger/wallet.service.ts';
import { providerAccount } from '../money/metering/settlement.plan.ts';
import { reasonsOf } from '../platform/audit/audit.service.ts';
import type { Database } from '../platform/database/tables.ts';
import type { FleetPage, FleetQuery, FleetSummary, OperatorProviderPage } from './fleet.schemas.ts';
import {
  countFleet,
  countNodesOf,
  type FleetRow,
  type FleetSearch,
  type ProviderSearch,
  searchFleet,
  searchProviders,
  slotsOf,
} from './fleet.store.ts';

export type Fleet = ReturnType<typeof createFleet>;

const MINUTE_MS = 60_000;
const NO_NODES = { nodes: 0, gpus: 0, free: 0 };

export function createFleet({ db, clock }: { db: Database; clock: Clock }) {
  return {
    async search({ min_check_age_minutes: age, ...query }: FleetQuery): Promise<FleetPage> {
      const uncheckedSinceMs = age === undefined ? undefined : clock.now() - age * MINUTE_MS;
      const search: FleetSearch = {
        ...query,
        offer: query.offer,
        free: query.free,
        uncheckedSinceMs,
      };
      const { total, rows } = await searchFleet(db, search);
      const ids = rows.map(({ id }) => id);
      const slots = Map.groupBy(await slotsOf(db, ids), ({ executor_id: id }) => id);
      const nodes = rows.map((row) => nodeOf(row, slots.get(row.id) ?? []));
      return { nodes, page: search.page, limit: search.limit, total };
    },

    async summary(): Promise<FleetSummary> {
      const counted = await countFleet(db);
      const sum = (of: 'nodes' | 'gpus' | 'free', rows = counted) =>
        rows.reduce((total, row) => total + row[of], 0);
      const notRentable = counted.filter(({ offer }) => offer !== 'rentable');
      return {
        nodes: sum('nodes'),
        gpus: sum('gpus'),
        free_gpus: sum('free'),
        free_not_rentable_gpus: sum('free', notRentable),
        offers: counted.map(({ free, ...row }) => ({ ...row, free_gpus: free })),
      };
    },

    async providers(search: ProviderSearch): Promise<OperatorProviderPage> {
      const { total, rows } = await searchProviders(db, search);
      const ids = rows.map(({ id }) => id);
      const counts = new Map((await countNodesOf(db, ids)).map((row) => [row.provider_id, row]));
      const reasons = await reasonsOf(db, { action: 'provider.ban', subjectIds: ids });
      const unpaid = await postedOf(db, ids.map(providerAccount));
      const providers = rows.map(({ id, hotkey, coldkey, email, ...row }) => {
        const { nodes, gpus, free } = counts.get(id) ?? NO_NODES;
        const isBanned = row.banned_at !== null;
        return {
          id,
          hotkey,
          coldkey,
          email,
          nodes,
          gpus,
          free_gpus: free,
          opted_in: row.opted_in === 1,
          banned: isBanned,
          banned_at: timeOf(row.banned_at),
          ban_reason: isBanned ? (reasons.get(id) ?? null) : null,
          unpaid: microToUsd(unpaid.get(providerAccount(id)) ?? 0),
          created_at: naiveUtc(row.created_at),
        };
      });
      return { providers, page: search.page, limit: search.limit, total };
    },
  };
}

function nodeOf(
  row: FleetRow,
  slots: readonly { idx: number; pod_id: string | null }[],
): FleetPage['nodes'][number] {
  const { id, provider_id, hotkey, offer, validator_hotkey } = row;
  return {
    id,
    provider_id,
    offer,
    validator_hotkey,
    huid: huidOf(id),
    miner_hotkey: hotkey,
    executor_ip_address: row.ip_address,
    executor_ip_port: String(row.port),
    machine_name: machineNameOf(row),
    gpu_count: gpuTotalOf(row),
    free_gpu_count: row.slots_free,
    min_gpu_count: minimumGpusOf(row),
    price_per_gpu: microToUsd(row.price_uusd_per_gpu_hour),
    reasons: offer === 'removed' ? [REMOVED] : rentalObstacles(row),
    slots: slots.map(({ idx, pod_id }) => ({ index: idx, pod_id })),
    checked_at: timeOf(row.verdict_at),
    last_seen_at: timeOf(row.last_seen_at),
    simulated: row.simulated === 1,
    created_at: naiveUtc(row.created_at),
  };
}

const REMOVED = { code: 'node_not_found', message: 'The node was removed' };

const timeOf = (ms: number | null) => (ms === null ? null : naiveUtc(ms));
