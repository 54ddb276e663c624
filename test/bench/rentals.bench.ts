/**
 * Cost of the transaction of a rental, compared with a bare loop that writes the same rows in as many commits. Every
 * commit is synced to disk.
 */
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { rentIn } from '../../validator/central/market/rentals/rental.service.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import type { UserIdentity } from '../../validator/central/platform/identity.ts';
import type { TestCentral } from '../fakes/scenes/central-fixture.ts';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../fakes/scenes/market-fixture.ts';
import { type Row, ratioAtLeast } from '../measure/row.ts';
import { type Copy, changesOf, copyOf, writeBare } from './bare-writes.ts';
import { seedMarket } from './market-seed.ts';

const RENTAL = { pod_name: 'pod', template_id: DEFAULT_TEMPLATE, gpu_count: 1 };
const RENTALS = 2_000;
/** Rentals that alternate with as many of the reference, so that load on the host affects both alike. */
const AT_ONCE = 100;
/** Accounts that rent the nodes in turn. */
const RENTERS = 20;
const LEAST_SHARE = 0.5;
const MS_PER_SECOND = 1_000;
const DEPS = {
  clock: systemClock,
  random: systemRandom,
  afterSpend: async () => undefined,
  beginRestore: async () => undefined,
  attachSecrets: async () => undefined,
  launchLimitMs: 600_000,
};
const ACTOR = { auth: 'session' as const, apiKeyId: null, requestId: 'bench-request' };

type Rental = { executorId: string; identity: UserIdentity };

/** Rents in copies of the database `file`, to which `db` is open. */
export async function rentals(central: TestCentral, db: Database, folder: string): Promise<Row> {
  const file = join(folder, 'central.db');
  const identities: UserIdentity[] = [];
  for (let index = 0; index < RENTERS; index += 1) identities.push(await renterIn(central));
  await seedMarket(db, RENTALS);
  const nodes = await db.selectFrom('executors').select('id').where('slots_free', '>', 0).execute();
  const rented = nodes.flatMap(({ id: executorId }, index) => {
    const identity = identities[index % RENTERS];
    return identity === undefined ? [] : [{ executorId, identity }];
  });
  const copy = (name: string) => copyOf(file, join(folder, name));
  const [recorded, ours, reference] = [copy('recorded'), copy('ours'), copy('reference')];
  try {
    const work = rented.map((rental) => (handle: Database) => rent(handle, rental));
    const changes = await changesOf(recorded, work);
    return await compare(ours, reference, { rented, changes });
  } finally {
    for (const each of [recorded, ours, reference]) await each.db.destroy();
  }
}

async function compare(
  ours: Copy,
  reference: Copy,
  { rented, changes }: { rented: readonly Rental[]; changes: readonly Uint8Array[] },
): Promise<Row> {
  const took = { ours: 0, reference: 0 };
  for (let from = 0; from < rented.length; from += AT_ONCE) {
    let beganMs = systemClock.monotonicMs();
    for (const rental of rented.slice(from, from + AT_ONCE)) await rent(ours.db, rental);
    took.ours += systemClock.monotonicMs() - beganMs;
    beganMs = systemClock.monotonicMs();
    for (const change of changes.slice(from, from + AT_ONCE)) writeBare(reference, change);
    took.reference += systemClock.monotonicMs() - beganMs;
  }
  const rate = (ms: number) => (rented.length * MS_PER_SECOND) / ms;
  const rates = { ours: rate(took.ours), reference: rate(took.reference) };
  return ratioAtLeast('rentals', '/s', 'the same rows and commits', rates, LEAST_SHARE);
}

async function rent(db: Database, { executorId, identity }: Rental): Promise<void> {
  const request = { executorId, identity, actor: ACTOR, body: RENTAL };
  await db.transaction().execute((tx) => rentIn(tx, DEPS, request));
}

/** Creates an account that can rent and logs it in. */
async function renterIn(central: TestCentral): Promise<UserIdentity> {
  const { id: accountId, key: headers } = await central.signUp();
  const body = { name: 'mine', public_key: PUBLIC_KEY };
  await central.call('POST', '/ssh-keys', { headers, body });
  return {
    kind: 'user',
    accountId,
    credential: { type: 'session', sessionId: '' },
    source: 'sdk',
    clientVersion: null,
  };
}
