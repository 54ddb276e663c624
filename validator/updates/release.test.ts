import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { signatureFromHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import { isSignatureGood, SignedDigest } from '#shared/updates/update-manifest.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  createEmptyPostgresDatabase,
  onPostgres,
} from '../../test/fakes/scenes/central-database.ts';
import { createTestCentral } from '../../test/fakes/scenes/central-fixture.ts';
import { testSigner } from '../../test/fakes/scenes/market-fixture.ts';
import { goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { rootA, rootB, rootKeySet, signedBy } from '../../test/fixtures/root-key-set.ts';
import { createValidator } from '../app.ts';
import { createGatewayAgents } from '../central/platform/adapters/gateway-agents.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import { openEvidenceStore, withStore } from '../store/evidence-store.ts';
import { createReadTag } from './image-registry.ts';
import { addKeySet } from './key-set.store.ts';
import { runReleaseCommand } from './release-command.ts';

const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const CACHE_MS = 300_000;
const LISTEN = { host: '127.0.0.1', port: 0 };
const AMD64 = `sha256:${'1'.repeat(64)}`;
const ARM64 = `sha256:${'2'.repeat(64)}`;
const log = createLog({ name: 'test', level: 'silent' });
const [validatorKey, centralKey] = [testSigner(1), testSigner(5)];
const folder = mkdtempSync(join(tmpdir(), 'podwright-releases-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A registry with one tag and a token server, and the faults that it simulates. */
let registry: {
  index: string;
  fault: 'none' | 'status' | 'silence' | 'forgery';
  requests: string[];
  /** Authorization that the token server requires; null for none. */
  tokensFor: string | null;
};
beforeEach(() => {
  registry = { index: indexOf('first'), fault: 'none', requests: [], tokensFor: null };
});

const indexOf = (variant: string) =>
  JSON.stringify({
    schemaVersion: 2,
    mediaType: INDEX_TYPE,
    manifests: [
      { digest: AMD64, platform: { os: 'linux', architecture: 'amd64' } },
      { digest: ARM64, platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
      { digest: AMD64, platform: { os: 'unknown', architecture: 'unknown' } },
    ],
    annotations: { variant },
  });
const digestOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;

function startRegistry(): Promise<{ host: string; server: Server }> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://registry');
    registry.requests.push(`${request.method} ${pathname}`);
    const realm = `http://${request.headers.host}/token`;
    const { tokensFor } = registry;
    if (pathname === '/token' && tokensFor !== null && request.headers.authorization !== tokensFor)
      response.writeHead(401).end();
    else if (pathname === '/token')
      response.end(JSON.stringify({ token: searchParams.get('scope') }));
    else if (request.headers.authorization !== 'Bearer repository:podwright/agent:pull') {
      const challenge = `Bearer realm="${realm}",service="test"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
    } else answer(response, pathname);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' ? address?.port : 0;
      resolve({ host: `127.0.0.1:${port}`, server });
    });
  });
}

function answer(response: ServerResponse, path: string): void {
  const { index, fault } = registry;
  const known = ['stable', digestOf(index)].map((each) => `/v2/podwright/agent/manifests/${each}`);
  if (fault === 'silence') return;
  if (fault === 'status' || !known.includes(path)) return void response.writeHead(503).end();
  const headers = { 'content-type': INDEX_TYPE, 'docker-content-digest': digestOf(index) };
  response.writeHead(200, headers).end(fault === 'forgery' ? `${index} ` : index);
}

/** Returns an address for a new evidence store on the engine under test. */
const newStoreFile = async () =>
  onPostgres() ? createEmptyPostgresDatabase() : join(folder, `${systemRandom.uuid()}.db`);

/**
 * Starts a central API and a validator that signs for the registry's tag, on a new evidence store or on the given one.
 */
async function createScene(present: string | null = null) {
  const storeFile = present ?? (await newStoreFile());
  const clock = createManualClock();
  const { host } = await startRegistry();
  const store = await openEvidenceStore(storeFile);
  const image = `${host}/podwright/agent`;
  const validator = createValidator({
    clock,
    random: systemRandom,
    log,
    signer: validatorKey,
    store,
    centralUrl: 'http://127.0.0.1:9/api',
    centralHotkey: centralKey.hotkey,
    proof: null,
    policy: { acceptSimulated: false, checks: readCheckPolicy() },
    weightSettings: {
      policy: goldenPolicy(),
      metagraph: null,
      embedded: false,
      cycleMs: 60_000,
      epochMs: 60_000,
      retentionDays: 14,
      verdictDays: null,
    },
    checkIntervalMs: 60_000,
    listIntervalMs: 60_000,
    releaseSource: {
      image,
      tag: 'stable',
      keyId: validatorKey.hotkey,
      firstPermille: 100,
      expiryMs: 3_600_000,
    },
  });
  const gatewayUrl = await validator.server.listen(LISTEN);
  const gateway = { gatewayUrl, gatewayHotkey: validatorKey.hotkey, signer: centralKey };
  const agents = createGatewayAgents({ ...gateway, clock, random: systemRandom });
  const central = await createTestCentral({ agents, clock });
  onTestFinished(async () => {
    await central.close();
    await validator.close();
    await store.destroy();
  });
  const ask = (path = '/updater/digest') => central.call('GET', path);
  return {
    clock,
    image,
    storeFile,
    ask,
    signed: async () => SignedDigest.parse((await ask()).body),
    async release(...words: string[]) {
      let said = '';
      const print = (text: string) => {
        said += text;
      };
      const store = { address: storeFile, variable: '--ledger' };
      const command = { words: ['release', ...words], store };
      await runReleaseCommand(command, { print, complain: print });
      await clock.advance(CACHE_MS);
      return said;
    },
  };
}

describe('GET /updater/digest', () => {
  it('returns the signed digest of the tag and a signed manifest, at both routes', async () => {
    const { clock, image, ask, signed } = await createScene();
    const { digest, timestamp, signature, manifest, signatures } = await signed();
    expect([digest, timestamp]).toEqual([
      digestOf(registry.index),
      Math.floor(clock.now() / 1_000),
    ]);
    const message = new TextEncoder().encode(`${digest}:${timestamp}`);
    const [key, bytes] = [publicKeyOf(validatorKey.hotkey), signatureFromHex(signature)];
    expect(key !== null && bytes !== null && verifySr25519(message, bytes, key)).toBe(true);
    expect(manifest).toMatchObject({
      kind: 'image-digest',
      image,
      tag: 'stable',
      digest,
      sequence: 1,
      previousDigest: null,
      rolloutPermille: 100,
      issuedAt: clock.now(),
      expiresAt: clock.now() + 3_600_000,
      platforms: { 'linux/amd64': AMD64, 'linux/arm64/v8': ARM64 },
    });
    expect(signatures.map((each) => isSignatureGood(manifest, each))).toEqual([true]);
    expect((await ask('/watchtower/digest')).body).toEqual((await ask()).body);
  });

  it('queries the registry every five minutes, and signs anew after each query', async () => {
    const { clock, signed } = await createScene();
    const first = await signed();
    const requests = registry.requests.length;
    await clock.advance(CACHE_MS - 1_000);
    expect([await signed(), registry.requests.length]).toEqual([first, requests]);
    await clock.advance(11_000);
    const second = await signed();
    expect([second.manifest.sequence, second.timestamp - first.timestamp]).toEqual([1, 310]);
  });

  it.each(['status', 'silence', 'forgery'] as const)(
    'fails with 502 for five minutes if the registry cannot be read: %s',
    async (fault) => {
      const { clock, ask } = await createScene();
      registry.fault = fault;
      const pending = ask();
      // Once the request is sent, the validator waits five seconds of its clock.
      await expect.poll(() => registry.requests.length).toBeGreaterThan(2);
      await clock.advance(5_000);
      const refused = await pending;
      expect([refused.status, refused.body.error.code]).toEqual([502, 'upstream_unavailable']);
      const requests = registry.requests.length;
      registry.fault = 'none';
      await clock.advance(CACHE_MS - 20_000);
      expect([(await ask()).status, registry.requests.length]).toEqual([502, requests]);
      await clock.advance(30_000);
      expect((await ask()).status).toBe(200);
    },
  );

  it('fetches its token with the login', async () => {
    const { host } = await startRegistry();
    const [username, password] = ['me', 'my secret'];
    registry.tokensFor = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const read = (secret: string) =>
      createReadTag(systemClock)(`${host}/podwright/agent`, 'stable', {
        host,
        username,
        password: secret,
      });
    expect(await read(password)).toMatchObject({ digest: digestOf(registry.index) });
    await expect(read('another')).rejects.toThrow(
      /rejects the login in VALIDATOR_AGENT_LOGIN_FILE/,
    );
  });

  it('increases the sequence for every new digest, also after a restart', async () => {
    const first = await createScene();
    await first.signed();
    const before = digestOf(registry.index);
    registry.index = indexOf('second');
    const second = await createScene(first.storeFile);
    expect((await second.signed()).manifest).toMatchObject({
      sequence: 2,
      digest: digestOf(registry.index),
      previousDigest: before,
    });
  });

  it('assigns one sequence to a digest that two processes read at once', async () => {
    const first = await createScene();
    const scenes = [first, await createScene(first.storeFile)];
    for (const sequence of [1, 2]) {
      registry.index = indexOf(`at once ${sequence}`);
      await Promise.all(scenes.map(({ clock }) => clock.advance(CACHE_MS)));
      const answers = await Promise.all(scenes.map(({ signed }) => signed()));
      expect(answers.map(({ manifest }) => manifest.sequence)).toEqual([sequence, sequence]);
    }
  });

  it('applies the operator’s release commands to the signed manifest', async () => {
    const { signed, release } = await createScene();
    await signed();
    const before = digestOf(registry.index);
    await expect(release('rollback', 'too early')).rejects.toThrow(ConfigError);
    registry.index = indexOf('second');
    await release('show');
    await signed();
    expect(await release('rollout', '500')).toContain('500/1000');
    await release('min-sequence', '2');
    await release('min-agent', '0.1.0');
    await release('notes', 'a better one');
    expect((await signed()).manifest).toMatchObject({
      sequence: 2,
      rolloutPermille: 500,
      minSequence: 2,
      minAgent: '0.1.0',
      notes: 'a better one',
    });
    expect(await release('rollback', 'it breaks')).toContain('it breaks');
    expect((await signed()).manifest).toMatchObject({
      sequence: 3,
      digest: digestOf(registry.index),
      rolloutPermille: 1_000,
      rollbackTo: { digest: before, reason: 'it breaks' },
    });
    registry.index = indexOf('third');
    await release('show');
    const { manifest } = await signed();
    expect(manifest).toMatchObject({ sequence: 4, previousDigest: before, rolloutPermille: 100 });
    expect(manifest).not.toHaveProperty('rollbackTo');
  });

  it('publishes the key sets that root keys have signed, and none before the first', async () => {
    const { clock, signed, storeFile } = await createScene();
    expect(await signed()).not.toHaveProperty('keySets');
    const sets = [rootKeySet(), rootKeySet({ sequence: 2 }), rootKeySet({ sequence: 3 })];
    const documents = sets.map((set) => signedBy(set, rootA, rootB));
    await withStore({ address: storeFile, variable: '--ledger' }, 'write', async (store) => {
      for (const document of documents) await addKeySet(store, document, clock.now());
    });
    await clock.advance(2 * CACHE_MS);
    expect((await signed()).keySets).toEqual([documents[0], documents[2]]);
  });

  it.each([
    [['rollout', '1001']],
    [['rollout', '-1']],
    [['rollout']],
    [['min-agent', 'new']],
    [['min-sequence', '1.5']],
    [['notes', 'ü']],
    [['rollback']],
    [['show', 'all']],
    [['undo']],
    [['rollout', '1', '2']],
  ])('rejects the command %j', async (words) => {
    const { release } = await createScene();
    await expect(release(...words)).rejects.toThrow(ConfigError);
  });
});
