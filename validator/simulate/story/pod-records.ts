/** Describes a pod from the central API's database: its state, usage, charges and postings. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Database } from '../../central/platform/database/tables.ts';

const MICRO_USD = 1_000_000;
const MAX_ROWS = 200;
const usd = (uusd: number): string => `$${(uusd / MICRO_USD).toFixed(6)}`;
const at = (ms: number | null): string => (ms === null ? 'now' : naiveUtc(ms));

/** Returns lines; an unknown pod has one. */
export async function describePod(db: Database, podId: string): Promise<string[]> {
  const pod = await db
    .selectFrom('pods')
    .select(['state', 'phase', 'reason_code', 'gpu_count', 'price_uusd_per_gpu_hour'])
    .select(['executor_id', 'account_id', 'first_running_at'])
    .where('id', '=', podId)
    .executeTakeFirst();
  if (pod === undefined) return [`pod ${podId}: no such pod`];
  const { state, phase, reason_code: reason, gpu_count: gpus, executor_id: node } = pod;
  const price = usd(pod.price_uusd_per_gpu_hour);
  return [
    `pod ${podId}: ${state}, phase ${phase}${reason === null ? '' : `, ${reason}`}`,
    `  ${gpus} GPUs of node ${node} at ${price} per GPU and hour, account ${pod.account_id}`,
    ...(await leases(db, podId)),
    ...(await usage(db, podId)),
    ...(await charges(db, podId)),
  ];
}

async function leases(db: Database, podId: string): Promise<string[]> {
  const slots = await db
    .selectFrom('gpu_slots')
    .select(['gpu_uuid', 'executor_id'])
    .where('pod_id', '=', podId)
    .orderBy('idx')
    .execute();
  return slots.length === 0
    ? ['  leases no GPU at present']
    : slots.map(({ gpu_uuid: gpu }) => `  leases ${gpu}`);
}

async function usage(db: Database, podId: string): Promise<string[]> {
  const segments = await db
    .selectFrom('usage_segments')
    .select(['from_ms', 'to_ms', 'state', 'is_billable', 'cause'])
    .where('pod_id', '=', podId)
    .orderBy('seq')
    .limit(MAX_ROWS)
    .execute();
  return segments.map(
    ({ from_ms: from, to_ms: to, state, is_billable: billable, cause }) =>
      `  usage ${at(from)} to ${at(to)}: ${state}, ${billable === 1 ? 'billable' : 'free'} (${cause})`,
  );
}

async function charges(db: Database, podId: string): Promise<string[]> {
  const meter = await db
    .selectFrom('usage_meters')
    .select(['charged_uusd', 'provider_uusd', 'granted_uusd', 'absorbed_uusd', 'refunded_uusd'])
    .where('pod_id', '=', podId)
    .executeTakeFirst();
  if (meter === undefined) return ['  never ran, so nothing was charged'];
  const ticks = await db
    .selectFrom('billing_ticks')
    .select(['tick_seq', 'to_ms', 'total_uusd', 'provider_total_uusd', 'group_id'])
    .where('pod_id', '=', podId)
    .orderBy('tick_seq')
    .limit(MAX_ROWS)
    .execute();
  return [
    ...ticks.map(
      (tick) =>
        `  settlement ${tick.tick_seq} to ${at(tick.to_ms)}: ${usd(tick.total_uusd)} in total, ${usd(tick.provider_total_uusd)} to the provider (posting ${tick.group_id})`,
    ),
    `  charged ${usd(meter.charged_uusd)}: provider ${usd(meter.provider_uusd)}, from granted credit ${usd(meter.granted_uusd)}, absorbed ${usd(meter.absorbed_uusd)}, refunded ${usd(meter.refunded_uusd)}`,
  ];
}
