import { afterEach, beforeEach, expect, it } from 'vitest';
import { sshKeysHash } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import type { FakeHost } from '../../../../test/fakes/agents/fake-agents.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import type { PodSshKey } from './pod.schemas.ts';
import type { PodKey } from './pod-key.ts';
import { mergeKeys } from './pod-keys.ts';

const newKey = (comment = 'added') => createSshKeyPair(systemRandom, comment).publicKey;

let market: TestMarket;
let account: TestAccount;
let host: FakeHost;
let podId: string;

beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode({ gpus: 1, minimum: 1 });
  account = await market.renter();
  host = market.agents.host(node.id);
  podId = (await market.rent(account, node.id, { gpu_count: 1 })).body.id;
});
afterEach(() => market.close());

const add = (body: Record<string, unknown>) =>
  market.call('POST', `/pods/${podId}/multiple-ssh-keys`, { headers: account.key, body });

async function register(public_key: string): Promise<string> {
  const body = { name: 'late', public_key };
  return (await market.call('POST', '/ssh-keys', { headers: account.key, body })).body.id;
}

it('adds each registered or pasted key once, and sends the keys to the node', async () => {
  await market.sync();
  const before = host.pods.get(podId)?.ssh_keys_hash;
  const id = await register(newKey());
  const pasted = newKey('pasted');
  const { status, body } = await add({ ssh_key_ids: [id], public_keys: [pasted, pasted] });
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: podId, added: 2, already_present: 1 });
  const texts = body.ssh_keys.map((key: PodSshKey) => key.public_key);
  expect(texts).toContain(pasted);

  await market.sync();
  expect(host.pods.get(podId)?.ssh_keys_hash).toBe(sshKeysHash(texts));
  expect(host.pods.get(podId)?.ssh_keys_hash).not.toBe(before);
  expect(await add({ ssh_key_ids: [id] })).toMatchObject({
    body: { added: 0, already_present: 1 },
  });
});

it('retries until the node has the keys', async () => {
  await market.sync();
  host.up = false;
  const { body } = await add({ public_keys: [newKey()] });
  await market.sync();
  host.up = true;
  await market.clock.advance(60_000);
  await market.sync();
  const texts = body.ssh_keys.map((key: PodSshKey) => key.public_key);
  expect(host.pods.get(podId)?.ssh_keys_hash).toBe(sshKeysHash(texts));
});

it('rejects an empty list, too many keys, keys of other accounts and malformed keys', async () => {
  expect((await add({})).status).toBe(422);
  expect((await add({ public_keys: Array.from({ length: 21 }, () => newKey()) })).status).toBe(422);
  expect((await add({ public_keys: ['ssh-rsa nonsense'] })).status).toBe(422);
  const unknown = await add({ ssh_key_ids: ['00000000-0000-4000-8000-000000000000'] });
  expect(unknown.status).toBe(404);
  const stranger = await market.renter();
  const [theirs] = (await market.call('GET', '/ssh-keys', { headers: stranger.key })).body;
  const foreign = await add({ ssh_key_ids: [theirs.id] });
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  const rounds = await Promise.all(
    Array.from({ length: 3 }, () =>
      add({ public_keys: Array.from({ length: 17 }, () => newKey()) }),
    ),
  );
  expect(rounds.filter(({ status }) => status === 400)).toHaveLength(1);
});

it('rejects keys for a pod that is being deleted', async () => {
  host.removesAtOnce = false;
  await market.sync();
  await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
  const { body } = await add({ public_keys: [newKey()] });
  expect(body.error.code).toBe('pod_state_conflict');
});

it('shows a pod as running once SSH logins work', async () => {
  const ssh = {
    port: 31_000,
    host_key_fingerprint: 'SHA256:x',
    host_key: `ssh-ed25519 ${'A'.repeat(68)}`,
    ready: false,
  };
  await market.sync();
  const other = await market.verifiedNode({ gpus: 1, minimum: 1 });
  const slow = market.agents.host(other.id);
  slow.arrives = 'starting';
  const id = (await market.rent(account, other.id, { gpu_count: 1 })).body.id;
  const status = async () => {
    await market.sync();
    return (await market.call('GET', `/pods/${id}`, { headers: account.key })).body;
  };
  await status();
  slow.change(id, { phase: 'running', phase_since_ms: market.clock.now(), ssh });
  expect(await status()).toMatchObject({ status: 'PENDING', ssh_connect_cmd: null });
  slow.change(id, { ports: { 22: 31_000 }, ssh: { ...ssh, ready: true } });
  expect(await status()).toMatchObject({
    status: 'RUNNING',
    ssh_host_key: ssh.host_key,
    known_hosts: `[127.0.0.1]:31000 ${ssh.host_key}`,
  });
  slow.change(id, { ssh });
  expect(await status()).toMatchObject({ status: 'RUNNING' });
  slow.change(id, { ports: { 22: 22 } });
  await market.clock.advance(10_000);
  expect(await status()).toMatchObject({ known_hosts: `127.0.0.1 ${ssh.host_key}` });
  // Now the pod runs its own SSH server.
  slow.change(id, { ssh: null });
  await market.clock.advance(10_000);
  expect(await status()).toMatchObject({ ssh_host_key: null, known_hosts: null });
});

it('ignores the comment when it compares keys', () => {
  const [one, two] = [newKey('one'), newKey('two')];
  const key = (public_key: string): PodKey => ({ id: null, name: '', public_key });
  const renamed = one.replace(/ one$/, ' other');
  expect(mergeKeys([key(one)], [key(renamed), key(two), key(two)])).toEqual({
    keys: [key(one), key(two)],
    added: 1,
  });
});
