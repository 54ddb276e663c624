import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

type Operation = {
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  responses: Record<string, { description: string; headers?: object }>;
};
type Method = 'GET' | 'POST' | 'DELETE';
type Described = { method: Method; url: string; operation: Operation };

/** Operations that the test does not call, because they would end its session. */
const ENDS_SESSION = new Set([
  'DELETE /api/users/me',
  'POST /api/auth/logout',
  'POST /portal/auth/logout',
]);

let market: TestMarket;
let operations: Described[];
beforeAll(async () => {
  market = await createTestMarket();
  operations = (await Promise.all(['/api', '/portal'].map(operationsBelow))).flat();
});
afterAll(() => market.close());

async function operationsBelow(prefix: string): Promise<Described[]> {
  const { paths } = (await market.server.inject({ url: `${prefix}/openapi.json` })).json();
  return Object.entries<Record<string, Operation>>(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase() as Method,
      url: `${prefix}${path}`,
      operation,
    })),
  );
}

const keyOf = ({ operation }: Described) =>
  operation.parameters?.find((parameter) => parameter.name === 'Idempotency-Key');

it('an operation describes the Idempotency-Key header if and only if it reads the header', async () => {
  const account = await market.signUp();
  await market.setOperator(account);
  const session = { api: account.session, portal: await market.logIn() };
  const read: string[] = [];
  const writing = operations.filter(
    ({ method, url }) => method !== 'GET' && !ENDS_SESSION.has(`${method} ${url}`),
  );
  for (const { method, url } of writing) {
    const answer = await market.server.inject({
      method,
      url: url.replaceAll(/\{\w+\}/g, () => randomUUID()),
      headers: {
        ...(url.startsWith('/portal')
          ? { authorization: `Bearer ${session.portal}` }
          : session.api),
        'idempotency-key': '"malformed"',
      },
      ...(method === 'DELETE' ? {} : { payload: {} }),
    });
    if (answer.payload.includes('Idempotency-Key header is malformed')) {
      read.push(`${method} ${url}`);
    }
  }
  const described = operations.filter(keyOf).map(({ method, url }) => `${method} ${url}`);
  expect(described.toSorted()).toEqual(read.toSorted());
  expect(described).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^POST .api.executors.\{\w+\}.rent$/),
      'POST /api/users/me/transfer-credits',
      'POST /portal/executors',
    ]),
  );
});

it('describes the key, the lifetime of the key, the replay header and the errors', () => {
  for (const described of operations) {
    const key = keyOf(described);
    const { responses } = described.operation;
    const good = Object.entries(responses).filter(([status]) => status.startsWith('2'));
    for (const [, { headers = {} }] of good) {
      expect('Idempotent-Replayed' in headers, described.url).toBe(key !== undefined);
    }
    if (key === undefined) continue;
    expect(key).toMatchObject({
      in: 'header',
      required: false,
      description: expect.stringContaining('24 hours'),
      schema: { type: 'string', pattern: '^[A-Za-z0-9_.:-]{1,255}$' },
    });
    expect(responses['409']?.description).toContain('idempotency_in_progress');
    expect(responses['422']?.description).toContain('idempotency_key_reused');
  }
});
