/** Figures of one simulated day, and the line that shows them. */
import type { RenterFigures } from '../actors/renter.ts';
import type { World } from '../world/world.ts';

export type DayFigures = {
  day: number;
  hosts: number;
  verified: number;
  gpus: number;
  gpusRented: number;
  /** Totals since the start. */
  jobs: number;
  rented: number;
  refused: number;
  failedStarts: number;
  checks: number;
  postings: number;
  chargedUsd: number;
  events: number;
};

const MICRO_USD = 1_000_000;

export async function dayFigures(
  { db, journal }: World,
  { day, figures }: { day: number; figures: RenterFigures },
): Promise<DayFigures> {
  const executors = await db
    .selectFrom('executors')
    .select(['state', 'gpu_count'])
    .where('state', '<>', 'removed')
    .execute();
  const slots = await db
    .selectFrom('gpu_slots')
    .select((eb) => eb.fn.count<number>('pod_id').as('taken'))
    .executeTakeFirst();
  const charged = await db
    .selectFrom('usage_meters')
    .select((eb) => eb.fn.sum<number | null>('charged_uusd').as('uusd'))
    .executeTakeFirst();
  const ticks = await db
    .selectFrom('billing_ticks')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return {
    day,
    hosts: executors.length,
    verified: executors.filter(({ state }) => state === 'verified').length,
    gpus: executors.reduce((sum, { gpu_count: count }) => sum + count, 0),
    gpusRented: Number(slots?.taken ?? 0),
    jobs: figures.jobs,
    rented: figures.rented,
    refused: [...figures.refusals.values()].reduce((sum, count) => sum + count, 0),
    failedStarts: figures.failedStarts,
    checks: journal.countOf('validator-executor-health-check'),
    postings: Number(ticks?.count ?? 0),
    chargedUsd: Number(charged?.uusd ?? 0) / MICRO_USD,
    events: journal.count(),
  };
}

/** Returns the line of a day. */
export function dayLine(figures: DayFigures): string {
  const { day, hosts, verified, gpus, gpusRented, jobs, rented, refused, failedStarts } = figures;
  const { checks, postings, chargedUsd, events } = figures;
  return [
    `day ${day}: ${verified}/${hosts} hosts verified`,
    `${gpusRented}/${gpus} GPUs rented`,
    `${jobs} jobs (${rented} rented, ${refused} refused, ${failedStarts} failed to start)`,
    `${checks} checks`,
    `${postings} postings`,
    `$${chargedUsd.toFixed(2)} charged`,
    `${events} events`,
  ].join(', ');
}
