/** A marketplace in memory: the real central API, fake agents, a provider, a validator and verified nodes. */
import type { InjectOptions } from 'fastify';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import { createSigner, toHex } from '#shared/signing/sr25519.ts';
import { type InventoryOptions, testInventory } from '../../fixtures/host-inventory.ts';
import { createFakeAgents } from '../agents/fake-agents.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentralOverrides,
} from './central-fixture.ts';

/** The error body of routes that respond without an error code. */
export const flatRefusal = (message: unknown) => ({ success: false, message });

/** Creates a signer whose seed repeats one byte. */
export function testSigner(byte: number) {
  return createSigner(new Uint8Array(32).fill(byte));
}

export type AddedNode = { id: string; port: number };
export type NodeOptions = InventoryOptions & { minimum?: number; price?: number; gpuType?: string };

/** A valid SSH public key. */
export const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ/tAzpR9ZwrM6Ejqg2T6Vm1Z2sCfIHmPpRUSk/4sIW me@here';
export const DEFAULT_TEMPLATE = '1948937e-5049-47ad-8e26-bcf1a4549d70';

export type TestMarketOverrides = Omit<TestCentralOverrides, 'agents'> & {
  /** Agents of another marketplace fixture on the same database. */
  agents?: ReturnType<typeof createFakeAgents>;
};

export type TestMarket = Awaited<ReturnType<typeof createTestMarket>>;

/** Creates the market. The caller must call `close()`. */
export async function createTestMarket(overrides: TestMarketOverrides = {}) {
  const validator = testSigner(1);
  const provider = testSigner(2);
  const { agents = createFakeAgents(), ...options } = overrides;
  const central = await createTestCentral({
    agents,
    validators: [validator.hotkey],
    ...options,
  });
  const { clock, server, ports } = central;
  agents.useClock(clock);
  let nextPort = 8_080;

  /** Sends a request below /portal. */
  async function portal(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    sent: { token?: string; body?: InjectOptions['payload'] } = {},
  ) {
    const { token, body } = sent;
    const response = await server.inject({
      method,
      url: `/portal${path}`,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { payload: body }),
    });
    return { status: response.statusCode, body: response.json() };
  }

  /**
   * Logs in with a signature made at the present time. A second login in the same second is rejected, so the clock
   * advances by one second.
   */
  async function logIn(signer = provider): Promise<string> {
    await clock.advance(1_000);
    const message = String(Math.floor(clock.now() / 1_000));
    const signature = toHex(signer.sign(new TextEncoder().encode(message)));
    const body = { miner_hotkey: signer.hotkey, message, signature };
    return (await portal('POST', '/auth/login-flexible', { body })).body.data.token;
  }

  /** Sends a request signed by the validator. */
  function asValidator(path: string, body: InjectOptions['payload'], signer = validator) {
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const signature = toHex(signer.sign(new TextEncoder().encode(timestamp)));
    const headers = { hotkey: signer.hotkey, timestamp, signature };
    return central.call('POST', `/validator/${signer.hotkey}${path}`, { headers, body });
  }

  /** Adds a node. Its first check is queued. */
  async function addNode(options: NodeOptions = {}): Promise<AddedNode> {
    const port = nextPort;
    nextPort += 1;
    const { gpus = 2, gpuType = 'NVIDIA H100 80GB HBM3', price } = options;
    const node = { gpu_type: gpuType, ip_address: '127.0.0.1', port, gpu_count: gpus };
    const body = price === undefined ? node : { ...node, price_per_gpu: price };
    const added = await portal('POST', '/executors', { token: await logIn(), body });
    if (added.status !== 200) throw new Error(JSON.stringify(added.body));
    const { id } = added.body.data;
    if (options.minimum !== undefined) {
      await ports.db
        .updateTable('executors')
        .set({ min_gpu_count: options.minimum })
        .where('id', '=', id)
        .execute();
    }
    return { id, port };
  }

  /** Sends a health report about a node as the validator. */
  function report(node: AddedNode, change: Partial<HealthReport> = {}, options: NodeOptions = {}) {
    const verdict: HealthReport = {
      verdict: 'verified',
      checked_at_ms: clock.now(),
      checks: [],
      inventory: testInventory(node.id, { collectedMs: clock.now(), ...options }),
      ...change,
    };
    return asValidator('/executor-health-check', { ...healthCheck(node), report: verdict });
  }

  /** The fields of a health check except its report. */
  function healthCheck(node: AddedNode) {
    return {
      miner_address: '127.0.0.1',
      miner_port: node.port,
      miner_hotkey: provider.hotkey,
      container_port: node.port,
      rental_in_progress: false,
      gpu_uuids: [],
      executor_id: node.id,
    };
  }

  /** Adds a node that is verified and free. */
  async function verifiedNode(options: NodeOptions = {}): Promise<AddedNode> {
    const node = await addNode(options);
    await report(node, {}, options);
    return node;
  }

  /** Creates an account with an SSH key. */
  async function renter(): Promise<TestAccount> {
    const account = await central.signUp();
    const body = { name: 'mine', public_key: PUBLIC_KEY };
    await central.call('POST', '/ssh-keys', { headers: account.key, body });
    return account;
  }

  /** Returns a function that sends an account's requests to paths below `prefix`. */
  function below(prefix: string, account: TestAccount) {
    return (
      method: 'GET' | 'POST' | 'DELETE',
      path = '',
      body?: object,
      headers: Record<string, string> = account.key,
    ) => {
      const sent = body === undefined ? { headers } : { headers, body };
      return central.call(method, `${prefix}${path}`, sent);
    };
  }

  function rent(
    account: TestAccount,
    nodeId: string,
    body: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ) {
    return central.call('POST', `/executors/${nodeId}/rent`, {
      headers: { ...account.key, ...headers },
      body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, ...body },
    });
  }

  return {
    ...central,
    agents,
    validator,
    provider,
    portal,
    logIn,
    asValidator,
    addNode,
    report,
    healthCheck,
    verifiedNode,
    renter,
    below,
    rent,
    sync: central.central.syncPods,
  };
}
