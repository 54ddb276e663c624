import { createPublicKey } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Enrolment, signEnrolment } from '#shared/api/agent/identity.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { changeCertificate, createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type Identity,
  identityFrom,
  RESPONSE_SIGNATURE_HEADER,
} from '#shared/signing/identity.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { makeCertificate } from '#shared/tls/certificate.ts';
import type { ListenerCertificate } from '#shared/tls/listener-certificate.ts';
import { findPeerRefusal, pinOf } from '#shared/tls/peer.ts';
import { describePort } from '#shared/tls/port-protocol.ts';
import { identifyAs } from '../../../test/fakes/agents/enrolled-agent.ts';
import { VALIDATOR_CONFIG } from '../../config.ts';
import { openEvidenceStore } from '../../store/evidence-store.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { createAgentLinks } from './agent-links.ts';

const ID = '11111111-1111-4111-8111-111111111111';
const DAY_MS = 86_400_000;
const identityOf = (fill: number) => identityFrom(new Uint8Array(32).fill(fill));
const signerOf = (fill: number) => createSigner(new Uint8Array(32).fill(fill));
const provider = signerOf(2);

/** State of the agent; tests change it at run time. */
type AgentState = {
  identity: Identity;
  enrolment: Enrolment | null;
  shown: ListenerCertificate | null;
  /** Changes an answer after it was signed. */
  alter: ((body: string) => string) | null;
  /** Signature of the answer: its own, none, or that of an earlier answer. */
  signature: 'own' | 'none' | 'replayed';
};

let state: AgentState;
let arrived: string[];
let store: EvidenceStore;
let agent: HttpServer;

beforeEach(async () => {
  arrived = [];
  const identity = identityOf(1);
  state = { identity, enrolment: enrolled(identity), ...PLAIN };
  store = await openEvidenceStore(':memory:');
});
afterEach(async () => {
  await agent.close();
  await store.destroy();
});

const PLAIN = { shown: null, alter: null, signature: 'own' as const };

function enrolled(identity: Identity, days = 30, by = provider): Enrolment {
  const expires_ms = systemClock.now() + days * DAY_MS;
  return signEnrolment({ executor_id: ID, public_key: identity.publicKey, expires_ms }, by);
}

function certificateOf({ privateKey }: Identity): ListenerCertificate {
  const [notBeforeMs, notAfterMs] = [systemClock.now() - DAY_MS, systemClock.now() + DAY_MS];
  const serial = systemRandom.bytes(16);
  return {
    cert: makeCertificate({ privateKey, name: 'agent', notBeforeMs, notAfterMs, serial }),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    pin: pinOf(createPublicKey(privateKey)),
    notAfterMs,
  };
}

async function startAgent(tls: 'off' | 'on' = 'off') {
  if (tls === 'on') state.shown = certificateOf(state.identity);
  agent = createHttpServer({
    log: createLog({ name: 'test', level: 'silent' }),
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 10_000,
    tls: state.shown,
  });
  let first: string | undefined;
  identifyAs(agent, {
    executorId: ID,
    identity: {
      privateKey: state.identity.privateKey,
      sign: (text) => state.identity.sign(text),
      get publicKey() {
        return state.identity.publicKey;
      },
    },
    readEnrolment: () => state.enrolment,
    shown: () => state.shown,
  });
  agent.addHook('onSend', async (_, reply, payload) => {
    const signature = reply.getHeader(RESPONSE_SIGNATURE_HEADER);
    if (typeof signature !== 'string') return payload;
    first ??= signature;
    if (state.signature === 'none') void reply.removeHeader(RESPONSE_SIGNATURE_HEADER);
    if (state.signature === 'replayed') void reply.header(RESPONSE_SIGNATURE_HEADER, first);
    return state.alter === null || typeof payload !== 'string' ? payload : state.alter(payload);
  });
  agent.post('/v1/command', async (request) => {
    arrived.push(JSON.stringify(request.body));
    return { done: true };
  });
  agent.get('/v1/refusal', async () => {
    throw new Error('broken');
  });
  const port = new URL(await agent.listen({ host: '127.0.0.1', port: 0 })).port;
  return callerOf(port, tls);
}

function callerOf(port: string, tls: 'off' | 'on') {
  const ports = { store, clock: systemClock, random: systemRandom, signer: signerOf(4) };
  const links = createAgentLinks({ ...ports, tls });
  const executor: ExecutorToCheck = {
    id: ID,
    executor_ip_address: '127.0.0.1',
    executor_ip_port: port,
    uptime_in_minutes: null,
    miner_hotkey: provider.hotkey,
    gpu_type: 'H100',
    gpu_count: 1,
    gpu_uuids: [],
    rented: false,
    pod_ids: null,
    price_uusd: null,
    collateral_deposited: null,
  };
  const send = (change: Partial<ExecutorToCheck> = {}) =>
    links.sendTo({ ...executor, ...change })({
      method: 'POST',
      path: '/v1/command',
      body: '{"environment":"secret"}',
    });
  return {
    links,
    executor,
    send,
    /** Returns a caller without cached links, as after a restart of the validator. */
    again: () => callerOf(port, tls),
    refusal: (change: Partial<ExecutorToCheck> = {}) =>
      send(change).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        (error) => findPeerRefusal(error)?.reason ?? String(error),
      ),
  };
}

const DONE = '200 {"done":true}';

it.each(['off', 'on'] as const)(
  'accepts responses of an enrolled agent, including signed error responses (TLS %s)',
  async (tls) => {
    const { refusal, links, executor } = await startAgent(tls);
    expect(await refusal()).toBe(DONE);
    const broken = await links.sendTo(executor)({ method: 'GET', path: '/v1/refusal' });
    expect(broken.status).toBe(500);
    const nothing = await links.sendTo(executor)({ method: 'GET', path: '/v1/nothing' });
    expect(nothing.status).toBe(404);
    const identity = await links.identityOf(executor);
    expect(identity.publicKey).toBe(state.identity.publicKey);
  },
);

it.each<[string, () => Partial<AgentState>]>([
  ['without an enrolment', () => ({ enrolment: null })],
  [
    'enrolled by another provider',
    () => ({ enrolment: enrolled(state.identity, 30, signerOf(8)) }),
  ],
  ['whose enrolment names another key', () => ({ enrolment: enrolled(identityOf(5)) })],
  ['whose enrolment has expired', () => ({ enrolment: enrolled(state.identity, -1) })],
  [
    'whose enrolment was extended without a signature',
    () => ({ enrolment: { ...enrolled(state.identity, -1), expires_ms: 2 ** 43 } }),
  ],
])('sends nothing to an agent %s', async (_, change) => {
  Object.assign(state, change());
  const { refusal } = await startAgent('on');
  expect(await refusal()).toBe('NOT_ENROLLED');
  expect(arrived).toEqual([]);
});

it.each<[string, Partial<AgentState>]>([
  ['unsigned', { signature: 'none' }],
  ['with the signature of an earlier answer', { signature: 'replayed' }],
  ['that was altered after it was signed', { alter: () => '{"done":false}' }],
])('rejects an answer %s', async (_, change) => {
  const { refusal } = await startAgent();
  expect(await refusal()).toBe(DONE);
  Object.assign(state, change);
  expect(await refusal()).toBe('RESPONSE_UNSIGNED');
  Object.assign(state, PLAIN);
  expect(await refusal()).toBe(DONE);
});

it('rejects another key without a later enrolment, also after a restart', async () => {
  const caller = await startAgent();
  expect(await caller.refusal()).toBe(DONE);
  const first = { identity: state.identity, enrolment: state.enrolment };
  const identity = identityOf(6);
  Object.assign(state, { identity, enrolment: enrolled(identity, 29) });
  // The existing link first receives an answer signed with another key.
  expect(await caller.refusal()).toBe('RESPONSE_UNSIGNED');
  expect(await caller.refusal()).toBe('IDENTITY_CHANGED');
  expect(await caller.again().refusal()).toBe('IDENTITY_CHANGED');
  state.enrolment = null;
  expect(await caller.refusal()).toBe('IDENTITY_CHANGED');
  state.enrolment = enrolled(identity, 31);
  expect(await caller.refusal()).toBe(DONE);
  Object.assign(state, first);
  expect(await caller.again().refusal()).toBe('IDENTITY_CHANGED');
});

it('accepts a known key after its enrolment expired, but not for another provider', async () => {
  const caller = await startAgent();
  expect(await caller.refusal()).toBe(DONE);
  state.enrolment = null;
  expect(await caller.again().refusal()).toBe(DONE);
  const other = signerOf(7);
  expect(await caller.refusal({ miner_hotkey: other.hotkey })).toBe('NOT_ENROLLED');
  state.enrolment = enrolled(state.identity, 1, other);
  expect(await caller.refusal({ miner_hotkey: other.hotkey })).toBe(DONE);
});

it.each<['off' | 'on', boolean, string]>([
  ['on', false, 'the port answers plain HTTP; the validator sent TLS'],
  ['off', true, 'the port answers TLS; the validator sent plain HTTP'],
])(
  'observes that agent and validator use different protocols (TLS of the validator: %s)',
  async (tls, secure, cause) => {
    const { executor } = await startAgent(secure ? 'on' : 'off');
    const { links, refusal } = callerOf(executor.executor_ip_port, tls);
    expect(await refusal()).not.toBe(DONE);
    const { found, sent } = await links.observePort(executor);
    expect(describePort(found, sent, 'the validator')).toBe(cause);
  },
);

it('sends TLS to an agent on a loopback address by default', async () => {
  const { executor } = await startAgent('on');
  const { VALIDATOR_AGENT_TLS } = parseConfig(VALIDATOR_CONFIG, {
    VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:8000/api',
    VALIDATOR_CENTRAL_HOTKEY: provider.hotkey,
  });
  expect(VALIDATOR_AGENT_TLS).toBe('on');
  expect(await callerOf(executor.executor_ip_port, VALIDATOR_AGENT_TLS as 'on').refusal()).toBe(
    DONE,
  );
});

it('rejects an agent of another executor at the same address', async () => {
  const { refusal } = await startAgent();
  const id = '22222222-2222-4222-8222-222222222222';
  expect(await refusal({ id })).toBe('IDENTITY_CHANGED');
  expect(arrived).toEqual([]);
});

it('accepts a renewed certificate of the agent, and sends nothing if the certificate is not the agent’s', async () => {
  const { send, refusal, links } = await startAgent('on');
  expect((await send()).status).toBe(200);
  const given = certificateOf(identityOf(10));
  state.shown = given;
  changeCertificate(agent, given);
  links.closeAll();
  expect(await refusal()).toBe(DONE);
  arrived = [];
  // A man in the middle: the document is the agent's, the certificate is not.
  changeCertificate(agent, certificateOf(identityOf(11)));
  links.closeAll();
  expect(await refusal()).toBe('TLS_PIN_MISMATCH');
  expect(arrived).toEqual([]);
});
