/** For each code of the interface's error table, a request that returns it. */

import { type RentRequest, rentIn } from '../../validator/central/market/rentals/rental.service.ts';
import { postGroup } from '../../validator/central/money/ledger/ledger.service.ts';
import { paidAccount } from '../../validator/central/money/ledger/wallet.service.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { eventually } from '../fakes/eventually.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import { DEFAULT_TEMPLATE, type TestMarket } from '../fakes/scenes/market-fixture.ts';
import { setAvailable, testCause } from '../fakes/scenes/wallet.ts';
import { testInventory } from '../fixtures/host-inventory.ts';

type Answer = {
  status: number;
  headers: Record<string, unknown>;
  body: Record<string, unknown>;
};
export type Scene = { market: TestMarket; account: TestAccount };
type Reach = (scene: Scene) => Promise<Answer>;

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const KEY = { 'idempotency-key': 'k' };

/** Returns a request that rents a verified node with two GPUs, after `prepare` and with `body`. */
function rentAfter(
  prepare: (scene: Scene, nodeId: string) => Promise<unknown>,
  body: Record<string, unknown> = {},
): Reach {
  return async (scene) => {
    const node = await scene.market.verifiedNode({ gpus: 2 });
    await prepare(scene, node.id);
    return scene.market.rent(scene.account, node.id, body);
  };
}

const nothing = async () => undefined;
const get =
  (path: string): Reach =>
  ({ market, account }) =>
    market.call('GET', path, { headers: account.key });

async function template({ market, account }: Scene, body: Record<string, unknown>) {
  const sent = { name: 't', docker_image: 'ubuntu', ...body };
  return market.call('POST', '/templates', { headers: account.key, body: sent });
}

/** Returns a rental request of the account that is logged in. */
function rentalOf(account: TestAccount, executorId: string): RentRequest {
  const credential = { type: 'session', sessionId: 'any' } as const;
  return {
    executorId,
    body: { pod_name: 'other', template_id: DEFAULT_TEMPLATE },
    identity: {
      kind: 'user',
      accountId: account.id,
      credential,
      source: 'sdk',
      clientVersion: null,
    },
    actor: { auth: 'session', apiKeyId: null, requestId: null },
  };
}

/** Returns true if a statement on this PostgreSQL database waits for a lock. */
async function isLockAwaited(db: Database): Promise<boolean> {
  const waiting = await db
    .withTables<{ pg_stat_activity: { datname: string; wait_event_type: string | null } }>()
    .selectFrom('pg_stat_activity')
    .select('datname')
    .where('wait_event_type', '=', 'Lock')
    .where((eb) => eb('datname', '=', eb.fn<string>('current_database', [])))
    .execute();
  return waiting.length > 0;
}

/**
 * Codes that two concurrent transactions cause. SQLite runs transactions one after the other, so concurrent requests
 * cannot conflict.
 */
export const REACH_IN_PARALLEL: Readonly<Record<string, Reach>> = {
  node_rent_in_progress: async ({ market, account }) => {
    const { db, clock, random } = market.ports;
    const node = await market.verifiedNode();
    const rival = await market.renter();
    let bySpec: Promise<Answer> | undefined;
    await db.transaction().execute(async (tx) => {
      const deps = {
        clock,
        random,
        launchLimitMs: 600_000,
        afterSpend: nothing,
        beginRestore: nothing,
        attachSecrets: nothing,
      };
      await rentIn(tx, deps, rentalOf(rival, node.id));
      // This request selects the node, which it reads as free, and waits for the other rental's lock.
      bySpec = market.call('POST', '/executors/rent-by-spec', {
        headers: account.key,
        body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE },
      });
      await eventually('a rental that waits for the node', () => isLockAwaited(db));
    });
    if (bySpec === undefined) throw new Error('no rental by specification succeeded');
    return bySpec;
  },
};

export const REACH: Readonly<Record<string, Reach>> = {
  node_rent_in_progress: rentAfter(({ market, account }, id) => market.rent(account, id)),
  unauthorized: ({ market }) => market.call('GET', '/users/me'),
  api_key_inactive: async ({ market, account }) => {
    const { db } = market.ports;
    await db.updateTable('api_keys').set({ is_active: 0 }).execute();
    return market.call('GET', '/users/me', { headers: account.key });
  },
  insufficient_balance: rentAfter(({ market }) => setAvailable(market.ports.db, 1)),
  account_balance_invalid: rentAfter(({ market, account }) => {
    const leg = {
      debit: 'external:topup',
      credit: paidAccount(account.id),
      amountUusd: Number.MAX_SAFE_INTEGER,
    } as const;
    const { db } = market.ports;
    return db.transaction().execute((tx) => postGroup(tx, [leg], testCause()));
  }),
  email_not_verified: rentAfter(({ market }) =>
    market.ports.db.updateTable('accounts').set({ email_verified_at: null }).execute(),
  ),
  forbidden: ({ market, account }) =>
    market.call('POST', '/keys', { headers: account.key, body: { name: 'more' } }),
  pod_not_found: get(`/pods/${NOWHERE}`),
  POD_NOT_FOUND: ({ market, account }) =>
    market.call('POST', `/pods/${NOWHERE}/chat-channel`, { headers: account.key, body: {} }),
  node_not_found: get(`/executors/${NOWHERE}/hardware-utilization`),
  template_not_found: get(`/templates/${NOWHERE}`),
  volume_not_found: get(`/volumes/${NOWHERE}/current-stats`),
  not_found: get('/nothing'),
  node_not_verified: async ({ market, account }) =>
    market.rent(account, (await market.addNode()).id),
  node_unavailable: rentAfter(async ({ market, account }, id) => {
    await market.rent(account, id);
    await market.sync();
  }),
  node_paused_by_provider: rentAfter(({ market }) =>
    market.ports.db.updateTable('executors').set({ paused: 1 }).execute(),
  ),
  provider_banned: rentAfter(({ market }) =>
    market.ports.db.updateTable('providers').set({ banned_at: 1 }).execute(),
  ),
  gpu_count_invalid: rentAfter(nothing, { gpu_count: 3 }),
  gpu_split_not_allowed: async ({ market, account }) => {
    const node = await market.addNode({ gpus: 2, minimum: 1 });
    const inventory = testInventory(node.id, { collectedMs: market.clock.now() });
    const docker = { ...inventory.docker, gpu_runtime: false };
    await market.report(node, { inventory: { ...inventory, docker, simulated: false } });
    return market.rent(account, node.id, { gpu_count: 1 });
  },
  no_executor_matches_spec: ({ market, account }) =>
    market.call('POST', '/executors/rent-by-spec', {
      headers: account.key,
      body: { pod_name: 'mine', gpu_type: 'B200' },
    }),
  template_invalid: async (scene) => {
    const { id } = (await template(scene, { one_time_template: true })).body;
    const use = rentAfter(nothing, { template_id: id });
    await use(scene);
    return use(scene);
  },
  ttl_invalid: rentAfter(nothing, { termination_hours: 721 }),
  pod_state_conflict: async ({ market, account }) => {
    const node = await market.verifiedNode();
    const { id } = (await market.rent(account, node.id)).body;
    const sent = { headers: account.key };
    return market.call('DELETE', `/pods/${id}/schedule-removal`, sent);
  },
  bad_request: rentAfter(({ market }) => market.ports.db.deleteFrom('ssh_keys').execute()),
  validation_error: rentAfter(nothing, { pod_name: 7 }),
  idempotency_key_invalid: ({ market, account }) =>
    market.rent(account, NOWHERE, {}, { 'idempotency-key': 'not valid' }),
  idempotency_key_reused: async ({ market, account }) => {
    await market.rent(account, NOWHERE, {}, KEY);
    return market.rent(account, NOWHERE, { pod_name: 'other' }, KEY);
  },
  idempotency_in_progress: async ({ market, account }) => {
    const { db, clock } = market.ports;
    await market.rent(account, NOWHERE, {}, KEY);
    // Sets the row to the state that another process leaves while a request is still running.
    const boot_id = 'other';
    await db.updateTable('idempotency').set({ state: 'running', status: null, boot_id }).execute();
    const living = { boot_id, beat_at: clock.now() };
    await db
      .insertInto('central_processes')
      .values(living)
      .onConflict((conflict) => conflict.column('boot_id').doUpdateSet(living))
      .execute();
    return market.rent(account, NOWHERE, {}, KEY);
  },
  conflict: async ({ market }) => {
    const sent = {
      token: await market.logIn(),
      body: { gpu_type: 'NVIDIA H100 80GB HBM3', ip_address: '127.0.0.1', port: 8_080 },
    };
    await market.portal('POST', '/executors', sent);
    return { headers: {}, ...(await market.portal('POST', '/executors', sent)) };
  },
  method_not_allowed: ({ market }) => market.call('DELETE', '/machines'),
  rate_limited: async ({ market }) => {
    const search = () => market.call('GET', '/users/search?email=a@example.com');
    for (let index = 0; index < 10; index += 1) await search();
    return search();
  },
  client_error: ({ market }) =>
    market.call('POST', '/users/login', { body: { email: 'x'.repeat(20_000) } }),
  upstream_unavailable: async ({ market, account }) => {
    const node = await market.verifiedNode();
    const { id } = (await market.rent(account, node.id, { template_id: DEFAULT_TEMPLATE })).body;
    await market.sync();
    market.agents.host(node.id).up = false;
    return market.call('GET', `/pods/${id}/logs`, { headers: account.key });
  },
  API_KEY_BUDGET_EXCEEDED: async ({ market, account }) => {
    const node = await market.verifiedNode({ gpus: 2 });
    const body = { name: 'limited', max_budget_usd: 0 };
    const { key } = (await market.call('POST', '/keys', { headers: account.session, body })).body;
    return market.rent(account, node.id, {}, { 'x-api-key': key });
  },
  BACKUP_STORAGE_BUSY: async ({ market, account }) => {
    const node = await market.verifiedNode();
    const { id } = (await market.rent(account, node.id, { template_id: DEFAULT_TEMPLATE })).body;
    await market.sync();
    const backUp = () =>
      market.call('POST', `/pods/${id}/backup`, { headers: account.key, body: {} });
    await backUp();
    return backUp();
  },
  internal_error: async ({ market }) => {
    await market.ports.db.schema.alterTable('executors').renameTo('lost').execute();
    return market.call('GET', '/executors');
  },
};
