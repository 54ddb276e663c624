/** The central API's connection to a gateway over TLS, with the real client and server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { findPeerRefusal } from '#shared/tls/peer.ts';
import { createSecureTransport, type Transport, type Trust } from '#shared/tls/transport.ts';
import { outsideAddress } from '../../test/fakes/outside-address.ts';
import { goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { createValidator, type Validator } from '../app.ts';
import { readCentralConfig } from '../central/config.ts';
import { createGatewayAgents } from '../central/platform/adapters/gateway-agents.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import { readValidatorConfig } from '../config.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { gatewayCertificates, gatewayCertificatesIn } from './gateway-certificate.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-gateway-'));
afterAll(() => rmSync(folder, { recursive: true }));
const signerOf = (fill: number) => createSigner(new Uint8Array(32).fill(fill));
const [central, own] = [signerOf(1), signerOf(2)];
const ID = '11111111-1111-4111-8111-111111111111';
const ports = { clock: systemClock, random: systemRandom };
const certificates = gatewayCertificatesIn(folder);
const ENVIRONMENT = {
  VALIDATOR_HOME: folder,
  VALIDATOR_CENTRAL_URL: 'https://central.example/api',
  VALIDATOR_CENTRAL_HOTKEY: central.hotkey,
};

let store: EvidenceStore;
const validators: Validator[] = [];
const transports: Transport[] = [];
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
});
afterEach(async () => {
  for (const transport of transports.splice(0)) transport.close();
  await Promise.all(validators.splice(0).map((validator) => validator.close()));
  await store.destroy();
});

/** Starts a gateway without a central API: accepted requests fail because the list of nodes cannot be read. */
async function gatewayWith(shown: typeof certificates): Promise<string> {
  const weightSettings = {
    policy: goldenPolicy(),
    metagraph: null,
    embedded: false,
    retentionDays: 1,
    verdictDays: null,
  };
  const validator = createValidator({
    ...ports,
    store,
    signer: own,
    certificates: shown,
    centralHotkey: central.hotkey,
    log: createLog({ name: 'test', level: 'silent' }),
    centralUrl: 'http://127.0.0.1:1/api',
    policy: { acceptSimulated: false, checks: readCheckPolicy() },
    proof: null,
    weightSettings: { ...weightSettings, cycleMs: 60_000, epochMs: 60_000 },
    checkIntervalMs: 60_000,
    agentTls: 'off',
    listIntervalMs: 60_000,
  });
  validators.push(validator);
  return new URL(await validator.server.listen({ host: '0.0.0.0', port: 0 })).port;
}

function clientAt(gatewayUrl: string, trust?: Trust) {
  const transport = trust === undefined ? [] : [createSecureTransport({ trust, ...ports })];
  transports.push(...transport);
  const [secure] = transport;
  const base = { gatewayUrl, gatewayHotkey: own.hotkey, signer: central, ...ports };
  return createGatewayAgents(secure === undefined ? base : { ...base, transport: secure }).clientOf(
    ID,
  );
}

const limits = { cpu_cores: 1, memory_bytes: 1e8, shm_bytes: 0, pids: 100 };
const spec = { generation: 1, image: { reference: 'a/b:1' }, limits, environment: { TOKEN: 'x' } };
const THROUGH = { code: 'upstream_unavailable', message: expect.stringContaining('central API') };

it('sends secrets over TLS to the pinned gateway and to no other', async () => {
  const url = `https://${outsideAddress()}:${await gatewayWith(certificates)}`;
  const pin = certificates?.().pin ?? 'anybody';
  await expect(clientAt(url, pin).putPod(ID, spec)).rejects.toMatchObject(THROUGH);
  const strangers = gatewayCertificatesIn(join(folder, 'other'))?.().pin ?? 'anybody';
  const refused = clientAt(url, strangers).putPod(ID, spec);
  expect(await refused.catch((error) => findPeerRefusal(error)?.reason)).toBe('TLS_PIN_MISMATCH');
  const unknown = clientAt(url, 'authorities').putPod(ID, spec);
  expect(await unknown.catch((error) => findPeerRefusal(error)?.reason)).toBe('TLS_UNTRUSTED');
});

it('accepts secrets over plain HTTP from its own machine only', async () => {
  const port = await gatewayWith(null);
  const outside = clientAt(`http://${outsideAddress()}:${port}`);
  await expect(outside.putPod(ID, spec)).rejects.toMatchObject({ code: 'tls_required' });
  await expect(outside.listPods()).rejects.toMatchObject(THROUGH);
  await expect(clientAt(`http://127.0.0.1:${port}`).putPod(ID, spec)).rejects.toMatchObject(
    THROUGH,
  );
});

it('requires TLS on reachable addresses unless it is explicitly disabled', () => {
  const read = (change: object) => readValidatorConfig({ ...ENVIRONMENT, ...change });
  expect(gatewayCertificates(read({}))).toBeNull();
  expect(gatewayCertificates(read({ VALIDATOR_HOST: '0.0.0.0' }))?.().pin).toBe(
    certificates?.().pin,
  );
  const off = { VALIDATOR_HOST: '0.0.0.0', VALIDATOR_TLS: 'off' };
  expect(() => read(off)).toThrow('VALIDATOR_TLS_OFF_EXPOSED');
  expect(gatewayCertificates(read({ ...off, VALIDATOR_TLS_OFF_EXPOSED: 'true' }))).toBeNull();
});

it.each([
  ['http://127.0.0.1:8090', true],
  ['http://localhost:8090', true],
  ['http://[::1]:8090', true],
  ['https://gateway.example', true],
  ['http://gateway.example', false],
  ['http://10.0.0.2:8090', false],
])('with the gateway at %s the central API starts: %s', (url, starts) => {
  const variables = { CENTRAL_GATEWAY_URL: url, CENTRAL_GATEWAY_HOTKEY: own.hotkey };
  const read = () => readCentralConfig(variables);
  if (starts) expect(read().CENTRAL_GATEWAY_URL).toBe(url);
  else expect(read).toThrow(ConfigError);
});
