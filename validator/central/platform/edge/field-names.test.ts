import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const RENT = `/executors/${ID}/rent`;
const BY_SPEC = '/executors/rent-by-spec';
const TRANSFER = '/users/me/transfer-credits';
const AUTO_TOP_UP = '/users/me/auto-top-up';

let market: TestMarket;
let account: TestAccount;
beforeAll(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterAll(() => market.close());

function send(method: 'POST' | 'PUT', path: string, body: Record<string, unknown>) {
  return market.call(method, path, { headers: account.key, body });
}

const meant = (name: string) => `Unknown field; did you mean ${name}?`;
const misplaced = (name: string) => `Misplaced field; ${name} belongs to the body.`;

it.each<[path: string, body: Record<string, unknown>, field: string, message: string]>([
  [RENT, { pod_nmae: 'x' }, 'body.pod_nmae', meant('pod_name')],
  [RENT, { pod_name: 'x', gpus: 1 }, 'body.gpus', meant('gpu_count')],
  [RENT, { pod_name: 'x', gpuCount: 1 }, 'body.gpuCount', meant('gpu_count')],
  [RENT, { pod_name: 'x', max_spend_us: 1 }, 'body.max_spend_us', meant('max_spend_usd')],
  [RENT, { pod_name: 'x', terminaton_hour: 1 }, 'body.terminaton_hour', meant('termination_hours')],
  [RENT, { pod_name: 'x', dry_run: true }, 'body.dry_run', `Only POST ${BY_SPEC} has this field.`],
  [
    BY_SPEC,
    { pod_name: 'x', maxPricePerGpuHour: 2 },
    'body.maxPricePerGpuHour',
    meant('max_price_per_gpu_hour'),
  ],
  [
    BY_SPEC,
    { pod_name: 'x', constraints: { min_cpus: 4 } },
    'body.constraints.min_cpus',
    misplaced('min_cpus'),
  ],
  [`${BY_SPEC}?dry_run=true`, { pod_name: 'x' }, 'query.dry_run', misplaced('dry_run')],
  [
    `${BY_SPEC}?explian=true`,
    { pod_name: 'x' },
    'query.explian',
    'Unknown parameter; did you mean explain?',
  ],
  [`${RENT}?gpus=1`, { pod_name: 'x' }, 'query.gpus', misplaced('gpu_count')],
  [TRANSFER, { recipient_email: 'a@b.example', ammount: 1 }, 'body.ammount', meant('amount')],
  [TRANSFER, { to: 'a@b.example', amount: 1 }, 'body.to', meant('recipient_email')],
  [`/pods/${ID}/backup`, { descripton: 'x' }, 'body.descripton', meant('description')],
  [
    `/pods/${ID}/backup`,
    { backup_path: '/root' },
    'body.backup_path',
    'Only POST /backup-configs has this field.',
  ],
  [`/pods/${ID}/restore`, { backup_id: ID, path: '/root' }, 'body.path', meant('restore_path')],
  [
    '/backup-configs',
    { pod_id: ID, backup_frequency_hour: 1 },
    'body.backup_frequency_hour',
    meant('backup_frequency_hours'),
  ],
])(
  'POST %s with %j is rejected with the field that was probably meant',
  async (path, body, field, message) => {
    const answer = await send('POST', path, body);
    expect([answer.status, answer.body.error.code]).toEqual([422, 'validation_error']);
    expect(answer.body.validation_errors).toEqual([{ field, message, type: 'unknown_field' }]);
    expect(answer.body.error.hint).toContain(field);
  },
);

it('rejects a misspelt member of an auto top-up, and accepts a complete row that a client sends back', async () => {
  const settings = { enabled: false, threshold_usd: 5, amount_usd: 20 };
  expect((await send('PUT', AUTO_TOP_UP, { ...settings, ammount_usd: 5 })).status).toBe(422);
  const stored = await send('PUT', AUTO_TOP_UP, settings);
  expect(stored.status).toBe(200);
  expect((await send('PUT', AUTO_TOP_UP, { ...stored.body, amount_usd: 30 })).body).toMatchObject({
    amount_usd: 30,
  });
});

it('ignores nulls, and fields that resemble no field of the route', async () => {
  const body = {
    pod_name: 'x',
    template_id: null,
    dockerfile_content: null,
    volume_id: null,
    user_public_key: null,
    initial_port_count: null,
    gpus: null,
    constructor: 'x',
    client_trace: { pod: 1 },
    workspace: 'x',
  };
  expect((await send('POST', RENT, body)).body.error.code).toBe('node_not_found');
});

it('ignores unknown fields on other routes', async () => {
  const body = { name: 'key', public_key: 'ssh-rsa x', publik_key: 'x' };
  const answer = await send('POST', '/ssh-keys', body);
  expect(JSON.stringify(answer.body)).not.toContain('publik_key');
});

it('checks the credential before the field names', async () => {
  expect((await market.call('POST', RENT, { body: { gpus: 1 } })).status).toBe(401);
});

it('reports at most 20 misspelt fields', async () => {
  const names = Array.from({ length: 30 }, (_, index) => [`gpus${'_'.repeat(index)}`, 1]);
  const { status, body } = await send('POST', RENT, Object.fromEntries(names));
  expect([status, body.validation_errors.length]).toEqual([422, 20]);
});

it('compares the first 200 unknown fields', async () => {
  const others = Array.from({ length: 199 }, (_, index) => [`unrelated-${index}`, 1] as const);
  const answer = (more: object) =>
    send('POST', RENT, { pod_name: 'x', ...Object.fromEntries(others), ...more });
  expect((await answer({ gpus: 1 })).status).toBe(422);
  expect((await answer({ another: 1, gpus: 1 })).body.error.code).toBe('node_not_found');
});

it('rejects bodies that are not objects, and names of built-in object members', async () => {
  for (const payload of [
    '[{"gpus":1}]',
    '"gpus"',
    '1',
    '{"pod_name":"x","__proto__":{"gpus":1}}',
  ]) {
    const headers = { ...account.key, 'content-type': 'application/json' };
    const url = `/api${RENT}`;
    const answer = await market.server.inject({ method: 'POST', url, headers, payload });
    expect([payload, answer.statusCode >= 400 && answer.statusCode < 500]).toEqual([payload, true]);
  }
});
