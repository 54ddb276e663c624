/** Bookmarks and machine requests in lists of nodes and pods. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { moveMachineRequest } from '../machine-requests/machine-request.store.ts';

const L40S = { gpuType: 'NVIDIA L40S', name: 'NVIDIA L40S' };

let market: TestMarket;
let account: TestAccount;
let h100: AddedNode;
let l40s: AddedNode;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
  h100 = await market.verifiedNode({ gpus: 4, minimum: 1 });
  l40s = await market.verifiedNode({ gpus: 1, price: 0.5, ...L40S });
});
afterEach(() => market.close());

type Row = { id: string; is_bookmarked?: boolean; machine_request_id?: string | null };

async function list(path: string, headers: Record<string, string> = account.key): Promise<Row[]> {
  const { status, body } = await market.call('GET', path, { headers });
  expect([path, status]).toEqual([path, 200]);
  return body;
}
const nodes = async (query: string, headers?: Record<string, string>) =>
  (await list(`/executors?${query}`, headers)).map(({ id }) => id);

async function bookmark(node: AddedNode) {
  await market.call('POST', '/bookmark', { headers: account.key, body: { executor_id: node.id } });
}

async function request(body: object): Promise<string> {
  return (await market.call('POST', '/machine-requests', { headers: account.key, body })).body.id;
}

it("filters by the caller's bookmarks, and treats no node as bookmarked without a credential", async () => {
  await bookmark(h100);
  expect(await nodes('bookmarked=true')).toEqual([h100.id]);
  expect(await nodes('bookmarked=true', account.session)).toEqual([h100.id]);
  expect(await nodes('bookmarked=false')).toEqual([l40s.id]);
  expect(await nodes('bookmarked=true&price_lte=1')).toEqual([]);
  // With `min_download_mbps`, the search uses another code path, which filters nodes one by one.
  expect(await nodes('bookmarked=true&min_download_mbps=0')).toEqual([h100.id]);
  for (const headers of [{}, { 'x-api-key': 'sk_nobody' }, (await market.signUp()).key]) {
    expect(await nodes('bookmarked=true', headers as Record<string, string>)).toEqual([]);
    expect(await nodes('bookmarked=false', headers as Record<string, string>)).toHaveLength(2);
  }
  const { headers } = await market.call('GET', '/executors?bookmarked=true&price_lte=1', {
    headers: account.key,
  });
  expect(headers['x-filter-funnel']).toBe('offered=2; price_lte=1; bookmarked=0');
});

it('shows annotations to their owner only', async () => {
  await bookmark(h100);
  const id = await request({ gpu_class: 'L40S' });
  await moveMachineRequest(market.ports.db, id, 'fulfilled', { fulfilled_executor_id: l40s.id });
  for (const path of ['/executors', '/executors?view=summary']) {
    expect(await list(path)).toMatchObject([
      { id: l40s.id, is_bookmarked: false, machine_request_id: id },
      { id: h100.id, is_bookmarked: true, machine_request_id: null },
    ]);
  }
  const { key } = await market.signUp();
  for (const row of await list('/executors', key)) {
    expect(row).toMatchObject({ is_bookmarked: false, machine_request_id: null });
  }
  for (const row of await list('/executors', {})) {
    expect(row).not.toHaveProperty('is_bookmarked');
    expect(row).not.toHaveProperty('machine_request_id');
  }
});

it('finds nodes that match a pending request, and the node that was added for a fulfilled request', async () => {
  const ask = (id: string, headers?: Record<string, string>) =>
    nodes(`machine_request_id=${id}`, headers);
  const id = await request({ gpu_class: 'H100', gpu_count: 4, hourly_budget: 8.8 });
  expect(await ask(id)).toEqual([h100.id]);
  expect(await list(`/executors?machine_request_id=${id}`)).toMatchObject([
    { is_bookmarked: false, machine_request_id: id },
  ]);
  expect(await ask(await request({ gpu_class: 'H100', gpu_count: 4, hourly_budget: 8.7 }))).toEqual(
    [],
  );
  expect(await ask(await request({ gpu_class: 'nvidia l40s', min_vram_gb: 40 }))).toEqual([
    l40s.id,
  ]);
  // Another account's request and an unknown request match no node.
  expect(await ask(id, (await market.signUp()).key)).toEqual([]);
  expect(await ask(id, {})).toEqual([]);
  for (const none of ['x', '00000000-0000-4000-8000-000000000000']) {
    expect(await ask(none)).toEqual([]);
  }

  await market.rent(account, h100.id, { gpu_count: 1 });
  expect(await ask(id)).toEqual([]);
  await moveMachineRequest(market.ports.db, id, 'fulfilled', { fulfilled_executor_id: h100.id });
  expect(await ask(id)).toEqual([h100.id]);
  const cancelled = await request({ gpu_class: 'L40S' });
  await market.call('DELETE', `/machine-requests/${cancelled}`, { headers: account.key });
  expect(await ask(cancelled)).toEqual([]);
});

it('filters pods by annotations of their nodes', async () => {
  const onH100 = (await market.rent(account, h100.id, { gpu_count: 2 })).body.id;
  const onL40s = (await market.rent(account, l40s.id)).body.id;
  const pods = async (query: string) =>
    (await list(`/pods?${query}`)).map(({ id }) => id).toSorted();
  await bookmark(l40s);
  expect(await pods('bookmarked=true')).toEqual([onL40s]);
  expect(await pods('bookmarked=false')).toEqual([onH100]);
  expect(await pods(`machine_request_id=${await request({ gpu_class: 'H100' })}`)).toEqual([
    onH100,
  ]);
  // A pod's node is compared by the number of GPUs that the pod rents.
  const four = await request({ gpu_class: 'H100', gpu_count: 4 });
  expect(await pods(`machine_request_id=${four}`)).toEqual([]);
  await moveMachineRequest(market.ports.db, four, 'fulfilled', { fulfilled_executor_id: l40s.id });
  expect(await pods(`machine_request_id=${four}`)).toEqual([onL40s]);
  expect(await pods('machine_request_id=x')).toEqual([]);
  expect(await pods('')).toEqual([onH100, onL40s].toSorted());
});

it('shows annotations on the node that a rental by specification chose', async () => {
  await bookmark(l40s);
  const body = { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, dry_run: true };
  const chosen = async (more: object) =>
    (
      await market.call('POST', '/executors/rent-by-spec', {
        headers: account.key,
        body: { ...body, ...more },
      })
    ).body.selected_executor;
  expect(await chosen({ gpu_type: 'L40S' })).toMatchObject({ is_bookmarked: true });
  expect(await chosen({ gpu_type: 'H100' })).toMatchObject({ is_bookmarked: false });
});
