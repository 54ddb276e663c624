import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { testSigner } from '../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../test/fakes/scenes/pod-scene.ts';
import { listAudit } from '../platform/audit/audit.service.ts';
import { createProviderBans } from './provider-ban.service.ts';

let scene: PodScene;
let token: string;
beforeEach(async () => {
  scene = await createPodScene();
  token = await scene.market.logIn();
});
afterEach(() => scene.close());

const path = () => `/executors/${scene.node.id}`;
const node = async () => (await scene.market.portal('GET', path(), { token })).body.data;
const codes = async () => (await node()).blocking_reasons.map(({ code }: { code: string }) => code);
const rent = () => scene.market.rent(scene.account, scene.node.id, { gpu_count: 1 });

function change(action: 'ban' | 'unban', request: { hotkey?: string; reason?: string } = {}) {
  const { db, clock } = scene.market.ports;
  const hotkey = scene.market.provider.hotkey;
  const full = { hotkey, reason: 'sold cards that do not exist', operator: 'ann', ...request };
  const bans = createProviderBans({ clock });
  return db.transaction().execute((tx) => bans[action](tx, full));
}

const audit = () => listAudit(scene.market.ports.db, { limit: 10 });

it('pauses one node: it accepts no new rentals, and its pods continue', async () => {
  const id = await scene.running();
  const other = await scene.market.verifiedNode({ gpus: 2, minimum: 1 });
  const paused = await scene.market.portal('POST', `${path()}/pause`, { token });
  expect([paused.status, paused.body.data.status]).toEqual([200, 'paused']);
  expect(await codes()).toEqual(['NODE_PAUSED']);
  const refused = await rent();
  expect([refused.status, refused.body.error.code]).toEqual([409, 'node_paused_by_provider']);
  const list = (await scene.market.call('GET', '/executors')).body;
  expect(list.map((row: { id: string }) => row.id)).toEqual([other.id]);
  await scene.later(60_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  // A repeated request changes nothing.
  expect((await scene.market.portal('POST', `${path()}/pause`, { token })).status).toBe(200);

  const resumed = await scene.market.portal('POST', `${path()}/resume`, { token });
  expect([resumed.body.data.status, await codes()]).toEqual(['available', []]);
  expect((await rent()).status).toBe(200);
});

it('lets only the provider of a node pause and resume it', async () => {
  const stranger = await scene.market.logIn(testSigner(9));
  for (const action of ['pause', 'resume']) {
    const answer = await scene.market.portal('POST', `${path()}/${action}`, { token: stranger });
    expect([action, answer.status]).toEqual([action, 403]);
  }
  expect((await node()).status).toBe('available');
});

it('does not resume a node whose announced removal has started', async () => {
  const starting = scene.market.clock.now() + 49 * 3_600_000;
  const body = { starting_at: `${naiveUtc(starting)}Z`, permanent_removal: true };
  const notice = await scene.market.portal('POST', `${path()}/notice-period`, { token, body });
  expect(notice.status).toBe(200);
  await scene.running();
  await scene.market.clock.advance(49 * 3_600_000);
  const refused = await scene.market.portal('POST', `${path()}/resume`, { token });
  expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict']);
});

it('returns the opt-out as a blocking reason until the provider opts in again', async () => {
  const optIn = (opt_in_status: boolean) =>
    scene.market.portal('POST', '/providers/opt-in', { token, body: { opt_in_status } });
  expect((await optIn(false)).status).toBe(200);
  expect((await node()).blocking_reasons).toEqual([
    {
      code: 'PROVIDER_OPTED_OUT',
      gating: true,
      message: expect.stringContaining('opted out'),
      measured: 'opted out',
      required: 'opted in',
      fix: expect.stringContaining('/providers/opt-in'),
      fix_command: null,
      verify_command: null,
      requires: null,
      docs_url: null,
      kind: 'decision',
    },
  ]);
  const seen = await scene.market.portal('GET', `${path()}/verification`, { token });
  expect(seen.body.data.blocking_reasons).toMatchObject([{ code: 'PROVIDER_OPTED_OUT' }]);
  expect((await rent()).body.error.code).toBe('node_paused_by_provider');
  await optIn(true);
  expect(await codes()).toEqual([]);
});

it('bans and unbans a provider, with an audit entry for each call; pods on its nodes continue', async () => {
  const id = await scene.running();
  expect(await change('ban')).toBe(true);
  expect(await change('ban', { reason: 'again' })).toBe(false);
  const refused = await rent();
  expect([refused.status, refused.body.error.code]).toEqual([409, 'provider_banned']);
  expect(await codes()).toEqual(['PROVIDER_BANNED']);
  await scene.later(60_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  expect(await change('unban', { reason: 'proved the cards' })).toBe(true);
  expect((await rent()).status).toBe(200);
  expect(await audit()).toMatchObject([
    { action: 'provider.unban', reason: 'proved the cards' },
    { action: 'provider.ban', reason: 'again' },
    { operator: 'ann', action: 'provider.ban', reason: 'sold cards that do not exist' },
  ]);
  const [{ subject_id: subject = '' } = {}] = await audit();
  const of = { subject_type: 'provider', subject_id: subject };
  const { db } = scene.market.ports;
  expect(await listAudit(db, { subject: of, limit: 10 })).toHaveLength(3);
  expect(
    await listAudit(db, { subject: { ...of, subject_id: systemRandom.uuid() }, limit: 10 }),
  ).toEqual([]);
});

it("removes the nodes of a banned provider from the market, and retains their pods and the provider's earnings", async () => {
  const id = await scene.running();
  await scene.later(60_000);
  await change('ban');
  const offers = (await scene.market.call('GET', '/executors')).body;
  expect(offers).toEqual([]);
  const spec = { headers: scene.account.key, body: { pod_name: 'mine', gpu_count: 1 } };
  const bySpec = await scene.market.call('POST', '/executors/rent-by-spec', spec);
  expect([bySpec.status, bySpec.body.code]).toEqual([409, 'no_executor_matches_spec']);
  // The renter's pod continues: it can be changed, and the provider earns.
  const renamed = await scene.call('PATCH', `/pods/${id}`, { pod_name: 'kept' });
  expect([renamed.status, renamed.body.status]).toEqual([200, 'RUNNING']);
  await scene.later(60_000);
  await scene.market.central.meterPods();
  const earned = await scene.market.portal('GET', '/billing', { token });
  expect(earned.body.data[0].net_usd).toBeGreaterThan(0);
});

it('bans the cards of a banned provider under every hotkey, also after the provider removed or changed its nodes', async () => {
  const { market } = scene;
  const other = testSigner(9);
  const otherToken = await market.logIn(other);
  const body = { gpu_type: 'NVIDIA H100 80GB HBM3', ip_address: '127.0.0.1', port: 9_999 };
  const added = await market.portal('POST', '/executors', {
    token: otherToken,
    body: { ...body, gpu_count: 2 },
  });
  const again = { id: added.body.data.id as string, port: 9_999 };
  const listed = async () => {
    const { body: list } = await market.asValidator('/executors', {});
    return list.find((row: { id: string }) => row.id === again.id).provider_banned;
  };
  await market.report(again, {}, { seed: scene.node.id });
  expect(await listed()).toBe(false);
  await change('ban');
  expect(await listed()).toBe(true);
  token = await market.logIn();
  const resized = await market.portal('POST', `${path()}/update-gpu`, {
    token,
    body: { gpu_count: 4 },
  });
  expect(resized.status).toBe(200);
  expect(await listed()).toBe(true);
  const removed = await market.portal('DELETE', path(), { token });
  expect(removed.status).toBe(200);
  expect(await listed()).toBe(true);
  await change('unban');
  expect(await listed()).toBe(false);
});

it.each([
  [{ reason: ' ' }, 'A reason of 1 to 500 characters is required'],
  [{ reason: 'x'.repeat(501) }, 'A reason of 1 to 500 characters is required'],
  [{ hotkey: 'nobody' }, 'No provider has the hotkey nobody'],
])('rejects %j and writes no audit entry', async (request, message) => {
  await expect(change('ban', request)).rejects.toThrow(message);
  expect(await audit()).toEqual([]);
});

it('never changes an audit entry', async () => {
  await change('ban');
  const { db } = scene.market.ports;
  await expect(db.updateTable('audit_entries').set({ reason: 'x' }).execute()).rejects.toThrow();
  await expect(db.deleteFrom('audit_entries').execute()).rejects.toThrow();
});
