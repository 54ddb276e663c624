import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import {
  type AccountEvent,
  EVENT_OUTCOMES,
  EVENT_REASONS,
  EVENT_TYPES,
} from '../../delivery/events/event.schemas.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CATALOGUE = EVENT_TYPES.flatMap((type) =>
  EVENT_OUTCOMES.map((outcome) => `${type}.${outcome}`),
);

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

/** Sends a request of the renter with the given request id. */
function named(
  requestId: string,
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body: Record<string, unknown> = {},
) {
  const headers = { ...scene.account.session, 'x-request-id': requestId };
  return scene.market.call(method, path, { headers, ...(method === 'DELETE' ? {} : { body }) });
}

async function rent(requestId: string): Promise<string> {
  const headers = { 'x-request-id': requestId };
  const rented = await scene.market.rent(scene.account, scene.node.id, { gpu_count: 1 }, headers);
  await scene.market.sync();
  return rented.body.id;
}

/** Returns actor, request id, type, reason and statuses of each event of a pod. */
async function story(id: string): Promise<(string | null)[][]> {
  const events: AccountEvent[] = await scene.events(id);
  for (const event of events) {
    expect(CATALOGUE).toContain(event.sub_event_type);
    expect(event.sub_event_type.split('.')[0]).toBe(event.event_type);
    expect([null, ...EVENT_REASONS]).toContain(event.reason);
    expect(event.actor.api_key_id === null).toBe(event.actor.auth !== 'api_key');
    expect(event).toMatchObject({ pod_id: id, event: { node: scene.node.id } });
  }
  return events.map((event) => [
    event.sub_event_type,
    event.actor.auth,
    event.request_id,
    event.reason,
    `${event.from_status} ${event.to_status}`,
    event.detail,
  ]);
}

it('records the events of a pod from rental, reboot and edit to the scheduled removal', async () => {
  const { host, market } = scene;
  const id = await rent('rent-0001');
  await named('reboot-0001', 'POST', `/pods/${id}/reboot`);
  await market.sync();
  host.change(id, { phase: 'running', reboots_done: 1 });
  await market.sync();
  await named('edit-0001', 'PUT', `/pods/${id}`, { environment: { A: 'b' } });
  await market.sync();
  const at = (hours: number) => `${naiveUtc(market.clock.now() + hours * HOUR_MS)}Z`;
  const path = `/pods/${id}/schedule-removal`;
  await named('schedule-0001', 'POST', path, { removal_scheduled_at: at(5) });
  await named('cancel-0001', 'DELETE', path);
  await named('schedule-0002', 'POST', path, { removal_scheduled_at: at(2) });
  // The removal waits half a minute for contact with the node.
  for (const minutes of [105, 15, 0.5]) await scene.later(minutes * MINUTE_MS);
  await market.sync();
  const running = 'RUNNING RUNNING';
  expect(await story(id)).toEqual([
    ['pod-rent.success', 'api_key', 'rent-0001', 'user_initiated', 'null PENDING', null],
    ['pod-create.success', 'system', 'rent-0001', null, 'PENDING RUNNING', null],
    ...[
      ['reboot-0001', null],
      ['edit-0001', 'edit'],
    ].flatMap(([request = null, detail = null]) => [
      [
        ...['pod-reboot.requested', 'session', request, 'user_initiated'],
        ...['RUNNING REBOOT_PENDING', detail],
      ],
      ['pod-reboot.success', 'system', request, null, 'REBOOT_PENDING RUNNING', null],
    ]),
    ...[
      ['schedule-0001', 'removal_scheduled'],
      ['cancel-0001', 'removal_cancelled'],
      ['schedule-0002', 'removal_scheduled'],
    ].map(([request = null, detail = null]) => [
      ...['pod-lifecycle.requested', 'session', request, 'user_initiated', running, detail],
    ]),
    [
      ...['pod-lifecycle.status', 'system', null, 'scheduled_termination'],
      ...[running, 'removal_warning'],
    ],
    [
      ...['pod-delete.requested', 'system', null, 'scheduled_termination'],
      ...['RUNNING DELETING', null],
    ],
    [
      ...['pod-delete.success', 'system', null, 'scheduled_termination'],
      ...['DELETING DELETED', null],
    ],
  ]);
});

it("records a failed launch with the rental's request id and the error", async () => {
  scene.host.arrives = 'pulling';
  const id = await rent('rent-0001');
  scene.host.change(id, { phase: 'failed', reason: 'ImageNotFound', message: 'no such image' });
  await scene.later();
  expect(await story(id)).toEqual([
    ['pod-rent.success', 'api_key', 'rent-0001', 'user_initiated', 'null PENDING', null],
    ['pod-lifecycle.status', 'system', 'rent-0001', null, 'PENDING PENDING', 'pulling'],
    [
      ...['pod-create.failed', 'system', 'rent-0001', 'image_pull_failed'],
      ...['PENDING CREATION_FAILED', null],
    ],
  ]);
  expect((await scene.events(id)).at(-1).error).toBe('no such image');
});

it('records an outage, a failed reboot and a deletion', async () => {
  const { host, market } = scene;
  const id = await rent('rent-0001');
  host.up = false;
  await scene.later(61_000);
  host.up = true;
  await scene.later(31_000);
  await named('reboot-0001', 'POST', `/pods/${id}/reboot`);
  await market.sync();
  host.change(id, { phase: 'failed', reason: 'StartFailed', message: 'exit 1' });
  await scene.later();
  await named('delete-0001', 'DELETE', `/pods/${id}`);
  await named('delete-0002', 'DELETE', `/pods/${id}`);
  await market.sync();
  expect((await story(id)).slice(2)).toEqual([
    ...[
      ['pod-lifecycle.status', 'system', null, 'provider_fault', 'RUNNING RUNNING', 'unreachable'],
      ['pod-lifecycle.status', 'system', null, null, 'RUNNING RUNNING', 'ready'],
    ],
    [
      ...['pod-reboot.requested', 'session', 'reboot-0001', 'user_initiated'],
      ...['RUNNING REBOOT_PENDING', null],
    ],
    [
      ...['pod-reboot.failed', 'system', 'reboot-0001', 'start_failed'],
      ...['REBOOT_PENDING REBOOT_FAILED', null],
    ],
    [
      ...['pod-delete.requested', 'session', 'delete-0001', 'user_initiated'],
      ...['REBOOT_FAILED DELETING', null],
    ],
    [
      ...['pod-delete.success', 'system', 'delete-0001', 'user_initiated'],
      ...['DELETING DELETED', null],
    ],
  ]);
});

describe("filters of a pod's events", () => {
  let id: string;
  /** Time of the rental; the reboot was requested a second later. */
  let rentedAt: number;
  beforeEach(async () => {
    rentedAt = scene.market.clock.now();
    id = await rent('rent-0001');
    await scene.market.clock.advance(1_000);
    await named('reboot-0001', 'POST', `/pods/${id}/reboot`);
  });

  const list = (query: string) => scene.call('GET', `/pods/${id}/events?${query}`);
  const types = async (query: string) =>
    (await list(query)).body.map((event: AccountEvent) => event.sub_event_type);

  it('limit events by number, time, pod and key', async () => {
    const [rented, created, reboot] = await types('');
    expect([rented, created, reboot]).toEqual([
      ...['pod-rent.success', 'pod-create.success', 'pod-reboot.requested'],
    ]);
    // `limit` returns the newest events, oldest first.
    expect(await types('limit=2')).toEqual([created, reboot]);
    expect(await types('limit=1000')).toHaveLength(3);
    expect(await types(`since=${naiveUtc(rentedAt + 1_000)}`)).toEqual([reboot]);
    expect(await types(`since=${naiveUtc(rentedAt + 999)}Z`)).toEqual([reboot]);
    expect(await types(`since=${naiveUtc(rentedAt)}`)).toHaveLength(3);
    expect(await types(`since=${naiveUtc(rentedAt + 1_001)}`)).toEqual([]);
    expect(await types(`pod_id=${id}`)).toHaveLength(3);
    expect(await types(`pod_id=${scene.node.id}`)).toEqual([]);
    const [key] = (await scene.call('GET', '/keys')).body;
    expect(await types(`api_key_id=${key.id}`)).toEqual([rented]);
    expect(await types(`api_key_id=${scene.node.id}`)).toEqual([]);
  });

  it('still work after the pod has ended', async () => {
    await scene.remove(id);
    await scene.market.sync();
    expect(await types('limit=1')).toEqual(['pod-delete.success']);
  });

  it.each(['limit=0', 'limit=1001', 'limit=x', 'since=yesterday', 'pod_id=x', 'api_key_id=1'])(
    'reject %s with 422',
    async (query) => {
      const { status, body } = await list(query);
      const [field] = body.validation_errors;
      expect([status, field.field]).toEqual([422, `query.${query.split('=')[0]}`]);
    },
  );
});
