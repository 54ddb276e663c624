/** The state of all objects at one time of a simulation, as lines of text. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { World } from '../world/world.ts';

const MICRO_USD = 1_000_000;
/** Objects of each kind that are listed one by one. */
const MAX_LISTED = 50;

export async function describeObjects({ db, fleet, clock, journal }: World): Promise<string[]> {
  const nodes = await db
    .selectFrom('executors')
    .select(['id', 'gpu_type', 'gpu_count', 'state', 'price_uusd_per_gpu_hour'])
    .orderBy('id')
    .execute();
  const pods = await db
    .selectFrom('pods')
    .select(['id', 'pod_name', 'state', 'phase', 'executor_id', 'reason_code'])
    .orderBy('id')
    .execute();
  const accounts = await db
    .selectFrom('ledger_accounts')
    .select(['id', 'credits_posted', 'debits_posted', 'debits_pending'])
    .orderBy('id')
    .execute();
  const live = pods.filter(({ state }) => state !== 'deleted' && state !== 'creation_failed');
  return [
    `state at ${naiveUtc(clock.now())}, after ${journal.count()} events`,
    `${nodes.length} nodes: ${tally(nodes.map(({ state }) => state))}`,
    ...listed(nodes, ({ id, gpu_type: gpu, gpu_count: count, state, ...node }) => {
      const answers = fleet.hostOf(id).isUp ? '' : ', does not answer';
      return `${id} ${count} × ${gpu}, ${state}, ${usd(node.price_uusd_per_gpu_hour)}/h${answers}`;
    }),
    `${pods.length} pods: ${tally(pods.map(({ state }) => state))}`,
    ...listed(live, ({ id, pod_name: name, state, phase, executor_id: node, reason_code: why }) =>
      [`${id} ${name}, ${state}, phase ${phase}, node ${node}`, why].filter(Boolean).join(', '),
    ),
    `${accounts.length} ledger accounts`,
    ...listed(
      accounts,
      ({ id, credits_posted: credits, debits_posted: debits, debits_pending: held }) =>
        `${id} ${usd(credits - debits)}, held ${usd(held)}`,
    ),
  ];
}

const usd = (uusd: number): string => `$${(uusd / MICRO_USD).toFixed(6)}`;

function tally(states: readonly string[]): string {
  const counts = [...Map.groupBy(states, (state) => state)].map(
    ([state, { length }]) => `${length} ${state}`,
  );
  return counts.length === 0 ? 'none' : counts.toSorted().join(', ');
}

function listed<T>(objects: readonly T[], lineOf: (object: T) => string): string[] {
  const more = objects.length - MAX_LISTED;
  const lines = objects.slice(0, MAX_LISTED).map((object) => `  ${lineOf(object)}`);
  return more > 0 ? [...lines, `  … and ${more} more`] : lines;
}
