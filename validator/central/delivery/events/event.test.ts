import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { listPodEvents, type RecordedEvent, recordEvent } from './event.service.ts';

const POD = '11111111-1111-4111-8111-111111111111';
const OTHER_POD = '22222222-2222-4222-8222-222222222222';
const NODE = '33333333-3333-4333-8333-333333333333';

let central: TestCentral;
let owner: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  owner = await central.signUp();
});
afterEach(() => central.close());

async function record(event: Partial<RecordedEvent> = {}): Promise<void> {
  await recordEvent(central.ports.db, central.ports, {
    accountId: owner.id,
    podId: POD,
    subEventType: 'pod-create.requested',
    actor: SYSTEM_ACTOR,
    payload: { pod_name: 'train', node: NODE },
    ...event,
  });
  await central.clock.advance(1_000);
}

async function list(query = '', headers: Record<string, string> = owner.key) {
  return central.call('GET', `/users/me/events${query}`, { headers });
}

it('returns an event with its actor, change and reason', async () => {
  const [key] = (await central.call('GET', '/keys', { headers: owner.session })).body;
  await record({
    subEventType: 'pod-fail.failed',
    actor: { auth: 'api_key', apiKeyId: key.id, requestId: 'request-1' },
    fromStatus: 'PENDING',
    toStatus: 'CREATION_FAILED',
    reason: 'image_pull_failed',
    payload: { pod_name: 'train', node: NODE, error: 'no such image', attempt: 3 },
  });
  const row = {
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    created_at: '2027-01-15T08:00:00.000000',
    event_type: 'pod-fail',
    sub_event_type: 'pod-fail.failed',
    pod_id: POD,
    pod_name: 'train',
    actor: { auth: 'api_key', api_key_id: key.id, api_key_name: 'default' },
    from_status: 'PENDING',
    to_status: 'CREATION_FAILED',
    reason: 'image_pull_failed',
    detail: null,
    error: 'no such image',
    request_id: 'request-1',
    event: { pod_name: 'train', node: NODE, error: 'no such image', attempt: 3 },
  };
  for (const headers of [owner.key, owner.session]) {
    const { status, body } = await list('', headers);
    expect([status, body]).toEqual([200, [row]]);
  }
  await central.call('DELETE', `/keys/${key.id}`, { headers: owner.session });
  expect((await list('', owner.session)).body).toEqual([row]);
});

it('lists events newest first, filtered by time, pod and API key, up to the limit', async () => {
  const [key] = (await central.call('GET', '/keys', { headers: owner.session })).body;
  const names = async (query: string) =>
    (await list(query)).body.map((row: { pod_name: string }) => row.pod_name);
  await record({ payload: { pod_name: 'a', node: NODE } });
  await record({ podId: OTHER_POD, payload: { pod_name: 'b', node: NODE } });
  const actor = { auth: 'api_key' as const, apiKeyId: key.id, requestId: null };
  await record({ actor, payload: { pod_name: 'c', node: NODE } });
  await record({ podId: null, subEventType: 'account.status' });
  const stranger = await central.signUp();
  await record({ accountId: stranger.id });

  expect(await names('')).toEqual(['train', 'c', 'b', 'a']);
  expect(await names('?limit=2')).toEqual(['train', 'c']);
  expect(await names('?since=2027-01-15T08:00:02Z')).toEqual(['train', 'c']);
  expect(await names('?since=2027-01-15T08:00:02')).toEqual(['train', 'c']);
  expect(await names('?since=2027-01-15T08:00:02.001')).toEqual(['train']);
  expect(await names('?limit=1')).toEqual(['train']);
  expect(await names('?limit=1000')).toHaveLength(4);
  expect(await names('?since=2027-01-15T09:00:02%2B01:00')).toEqual(['train', 'c']);
  expect(await names(`?pod_id=${POD}`)).toEqual(['c', 'a']);
  expect(await names(`?api_key_id=${key.id}`)).toEqual(['c']);
  expect(await names(`?api_key_id=${key.id}&pod_id=${OTHER_POD}`)).toEqual([]);
  const { id } = (await list('')).body[1];
  expect(await names(`?before=${id}`)).toEqual(['b', 'a']);
  expect(await names(`?before=${id}&limit=1`)).toEqual(['b']);
  expect(await names('?before=00000000-0000-4000-8000-000000000000')).toEqual([]);
  expect(await names('?unknown=1')).toHaveLength(4);
});

it.each(['limit=0', 'limit=1001', 'limit=x', 'since=yesterday', 'pod_id=x', 'api_key_id=1'])(
  'returns 422 for the query %s',
  async (query) => {
    const { status, body } = await list(`?${query}`);
    expect([status, body.validation_errors[0].field]).toEqual([
      422,
      `query.${query.split('=')[0]}`,
    ]);
  },
);

it('lists the newest events of one pod, oldest first', async () => {
  for (const pod_name of ['a', 'b', 'c']) await record({ payload: { pod_name, node: NODE } });
  await record({ podId: OTHER_POD });
  const names = (rows: { pod_name: string | null }[]) => rows.map((row) => row.pod_name);
  const { db } = central.ports;
  expect(names(await listPodEvents(db, POD))).toEqual(['a', 'b', 'c']);
  const limited = await listPodEvents(db, POD, {
    limit: 2,
    since: undefined,
    before: undefined,
    pod_id: undefined,
    api_key_id: undefined,
  });
  expect(names(limited)).toEqual(['b', 'c']);
});
