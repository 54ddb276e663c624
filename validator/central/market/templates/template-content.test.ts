import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { checkTemplatePaths, imageReference, parseImageName } from './template-content.ts';

let market: TestMarket;
let account: TestAccount;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterEach(() => market.close());

const send = (method: 'GET' | 'POST' | 'PUT', path: string, body?: Record<string, unknown>) =>
  market.call(method, path, { headers: account.key, ...(body === undefined ? {} : { body }) });
const NEW = { name: 'x', docker_image: 'ubuntu' };

const REFUSED: [string, object][] = [
  ['"relative" is not an absolute path', { volumes: ['relative'] }],
  ['"/" is the root', { volumes: ['/'] }],
  ['"/.." has empty, . or ..', { volumes: ['/..'] }],
  ['"/a/../b" has', { volumes: ['/a/../b'] }],
  ['"//a" has', { volumes: ['//a'] }],
  ['control character', { volumes: ['/a\nb'] }],
  ['colon', { volumes: ['/a:/b'] }],
  ['"/proc" is in', { volumes: ['/proc'] }],
  ['"/sys/fs" is in', { volumes: ['/sys/fs'] }],
  ['"/dev/" is in', { volumes: ['/data', '/dev/'] }],
  ['"/.podwright/ssh" is in', { volumes: ['/.podwright/ssh'] }],
  ['"/a/" is listed twice', { volumes: ['/a', '/a/'] }],
  ['"/a/b" overlaps with "/a"', { volumes: ['/a', '/ab', '/a/b'] }],
  ['"/a" overlaps with "/a/b"', { volumes: ['/a/b', '/a'] }],
  ['PODWRIGHT_AUTHORIZED_KEYS is set by', { environment: { PODWRIGHT_AUTHORIZED_KEYS: '/x' } }],
  ['podwright_X is set by', { environment: { A: 'b', podwright_X: '' } }],
  ['PODWRIGHT_OWN_SSHD is neither', { environment: { PODWRIGHT_OWN_SSHD: 'yes' } }],
];

it('rejects reserved paths and variables in every route that writes a template', async () => {
  const { body: own } = await send('POST', '/templates', NEW);
  for (const [message, part] of REFUSED) {
    const answers = [
      await send('POST', '/templates', { ...NEW, ...part }),
      await send('PUT', `/templates/${own.id}`, { ...part }),
    ];
    for (const { status, body } of answers) {
      expect([status, body.error.code]).toEqual([400, 'template_invalid']);
      expect(body.error.message).toContain(message);
    }
  }
  expect((await send('GET', `/templates/${own.id}`)).body).toEqual(own);
});

it('rejects reserved paths and variables in an edit of a pod, and changes neither pod nor template', async () => {
  const node = await market.verifiedNode({ gpus: 1 });
  const { body: own } = await send('POST', '/templates', NEW);
  const { body: pod } = await market.rent(account, node.id, { template_id: own.id });
  await market.sync();
  for (const part of [{ volumes: ['/proc/1'] }, { environment: { PODWRIGHT_TERMINAL: 'x' } }]) {
    const edited = await send('PUT', `/pods/${pod.id}`, { ...part, name: 'other' });
    expect([edited.status, edited.body.error.code]).toEqual([400, 'template_invalid']);
  }
  expect((await send('GET', `/pods/${pod.id}`)).body.status).toBe('RUNNING');
  expect((await send('GET', `/templates/${own.id}`)).body).toEqual(own);
});

it('accepts a template as it was returned, and common templates', async () => {
  const environment = { PODWRIGHT_OWN_SSHD: '1', NVIDIA_VISIBLE_DEVICES: 'all' };
  const volumes = ['/workspace/', '/data/a', '/data/b', '/processes'];
  const { body: own } = await send('POST', '/templates', { ...NEW, environment, volumes });
  const again = await send('PUT', `/templates/${own.id}`, own);
  expect([again.status, again.body]).toEqual([200, own]);
  expect(() => checkTemplatePaths({})).not.toThrow();
});

const DIGEST = `sha256:${'a'.repeat(64)}`;

it.each([
  ['ubuntu', '24.04', '', 'ubuntu', '24.04', ''],
  ['ubuntu', '', '', 'ubuntu', 'latest', ''],
  ['ubuntu:22.04', '', '', 'ubuntu', '22.04', ''],
  ['host:5000/team/app', '1', '', 'host:5000/team/app', '1', ''],
  ['host', '5000/team/app', '', 'host:5000/team/app', 'latest', ''],
  ['host:5000/app:1', '', '', 'host:5000/app', '1', ''],
  ['ubuntu', '24.04', DIGEST, 'ubuntu', '24.04', DIGEST],
  ['ubuntu', '', DIGEST, 'ubuntu', '', DIGEST],
  [`ubuntu@${DIGEST}`, '', '', 'ubuntu', '', DIGEST],
  ['ubuntu@sha256', 'a'.repeat(64), '', 'ubuntu', '', DIGEST],
  [`ubuntu:24.04@${DIGEST}`, '', DIGEST, 'ubuntu', '24.04', DIGEST],
  ['podwright.local/base', '1', '', 'podwright.local/base', '1', ''],
])('parses %s + %s + %s', (image, tag, digest, expectedImage, expectedTag, expectedDigest) => {
  const parsed = { image: expectedImage, tag: expectedTag, digest: expectedDigest };
  expect(parseImageName(image, tag, digest)).toEqual(parsed);
  expect(parseImageName(expectedImage, expectedTag, expectedDigest)).toEqual(parsed);
});

it.each([
  ['', '', ''],
  ['Ubuntu', 'x', ''],
  ['ubuntu:22.04', '24.04', ''],
  ['ubuntu', 'a b', ''],
  ['ubuntu', '-x', ''],
  ['ubuntu; rm -rf /', '', ''],
  ['ubuntu\n', '', ''],
  ['../etc', '', ''],
  ['--privileged', '', ''],
  ['ubuntu', '', 'sha256:abc'],
  [`ubuntu@${DIGEST}@${DIGEST}`, '', ''],
  [`ubuntu@${DIGEST}`, '', `sha256:${'b'.repeat(64)}`],
  ['http://host/app', '', ''],
])('rejects %j + %j + %j', (image, tag, digest) => {
  expect(parseImageName(image, tag, digest)).toBeNull();
});

it('writes references that agents accept', () => {
  expect(imageReference({ image: 'ubuntu', tag: '24.04' })).toBe('ubuntu:24.04');
  expect(imageReference({ image: 'ubuntu', tag: '' })).toBe('ubuntu');
});
