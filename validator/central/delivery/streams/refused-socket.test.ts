/** Refused WebSockets: a page gets a close code and reason, other clients get the HTTP status. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { upgrade } from '../../../../test/fakes/raw-upgrade.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

const ORIGIN = 'https://console.example.com';
const POD = '/pods/11111111-1111-4111-8111-111111111111';

let central: TestCentral;
let account: TestAccount;
let base: string;
beforeAll(async () => {
  central = await createTestCentral();
  account = await central.signUp();
  base = `${await central.server.listen({ host: '127.0.0.1', port: 0 })}/api`;
});
afterAll(() => central.close());

/** Connects as a page does; returns the close code and reason. */
async function closeOf(path: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(base + path, { origin: ORIGIN, headers });
  const [code, reason] = await once(socket, 'close');
  return [code, String(reason)];
}

it.each([`${POD}/terminal`, `${POD}/logs`])(
  'closes a refused socket of a page at %s with 4000 + status and the error code',
  async (path) => {
    expect(await closeOf(path)).toEqual([4401, 'unauthorized']);
    expect(await closeOf(`${path}?ticket=spent`)).toEqual([4401, 'unauthorized']);
    expect(await closeOf(path, account.key)).toEqual([4404, 'pod_not_found']);
    const invalid = path.replace(/[^/]+(?=\/[a-z]+$)/, 'no-id');
    expect(await closeOf(invalid, account.key)).toEqual([4422, 'validation_error']);
  },
);

it('refuses other clients, incomplete handshakes and other paths with the HTTP status', async () => {
  const url = `${base}${POD}/terminal`;
  expect(await upgrade(url)).toMatchObject({ status: 401, code: 'unauthorized' });
  const incomplete = { origin: ORIGIN, 'sec-websocket-key': 'short' };
  expect(await upgrade(url, incomplete)).toMatchObject({ status: 401, code: 'unauthorized' });
  const plain = await fetch(url, { headers: { ...account.key, origin: ORIGIN } });
  expect(plain.status).toBe(426);
  const elsewhere = { ...account.key, origin: ORIGIN };
  expect(await upgrade(`${base}/users/me`, elsewhere)).toMatchObject({ status: 400 });
});
