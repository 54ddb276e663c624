/**
 * A renter with pods that cost one micro-dollar per millisecond and GPU, and the segments that metering records for
 * them.
 */
import { meteredPods } from '../../../validator/central/money/metering/metered.service.ts';
import type { TestMarketOverrides } from './market-fixture.ts';
import { createPodScene } from './pod-scene.ts';

const PRICE_UUSD_PER_HOUR = 3_600_000;
/** Interval at which a node reports. */
const SYNC_MS = 10_000;

export type MeteringScene = Awaited<ReturnType<typeof createMeteringScene>>;

/** Creates the scene. The caller must call `close()`. */
export async function createMeteringScene(overrides: TestMarketOverrides = {}) {
  const scene = await createPodScene(overrides);
  const { db } = scene.market.ports;
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD_PER_HOUR }).execute();
  let startMs = 0;

  return {
    ...scene,
    db,
    tick: () => scene.market.central.meterPods(),
    /** Starts a pod that runs from `startMs()` on. */
    async running(body: Record<string, unknown> = {}): Promise<string> {
      const id = await scene.running(body);
      startMs = scene.market.clock.now();
      return id;
    },
    startMs: () => startMs,
    /** Sets `startMs()` to the present time, for a pod that begins to run now. */
    countFromNow(): void {
      startMs = scene.market.clock.now();
    },
    /** Advances the clock by `ms` while the node reports at its usual interval. */
    async live(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= SYNC_MS) await scene.later(Math.min(left, SYNC_MS));
    },
    meter: (id: string) =>
      db.selectFrom('usage_meters').selectAll().where('pod_id', '=', id).executeTakeFirstOrThrow(),
    /** The meter with the use that is not posted yet. */
    metered: async (id: string) =>
      (await meteredPods(db, [id], scene.market.clock.now())).get(id) ?? missing(id),
    me: async () => (await scene.call('GET', '/users/me')).body,
    /** Ledger balances, summed by kind of account; accounts of the platform and of clearing are listed by name. */
    async ledger(): Promise<Record<string, number>> {
      const rows = await db.selectFrom('ledger_accounts').selectAll().execute();
      return Object.fromEntries(
        rows.map(({ id, credits_posted, debits_posted }) => {
          const kind = id.split(':')[0] ?? '';
          const isNamed = kind === 'platform' || kind === 'clearing';
          return [isNamed ? id : kind, credits_posted - debits_posted];
        }),
      );
    },
    /** Start and end of each segment, relative to `startMs()`, and the reason. */
    async segments(id: string) {
      const rows = await db
        .selectFrom('usage_segments')
        .selectAll()
        .where('pod_id', '=', id)
        .orderBy('seq')
        .execute();
      return rows.map(({ from_ms, to_ms, cause }) => [
        from_ms - startMs,
        to_ms === null ? null : to_ms - startMs,
        cause,
      ]);
    },
  };
}

function missing(id: string): never {
  throw new Error(`pod ${id} has no meter`);
}
