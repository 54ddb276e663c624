/** Debian's registry, which accepts one login only. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import {
  type ImageRegistry,
  REGISTRY_LOGIN,
  startImageRegistry,
} from '../../test/fakes/external/image-registry.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import { createReadTag } from './image-registry.ts';
import { createReleases } from './release.service.ts';

const VARIABLE = 'VALIDATOR_AGENT_LOGIN_FILE';
const folder = mkdtempSync(join(tmpdir(), 'podwright-login-'));
const file = join(folder, 'login.json');
const signer = createSigner(new Uint8Array(32).fill(3));
let registry: ImageRegistry;
let digest: string;

beforeAll(async () => {
  registry = await startImageRegistry({ isPrivate: true });
  digest = await registry.publish('podwright/agent', 'stable', ['CMD ["true"]']);
});
afterAll(async () => {
  await registry.close();
  rmSync(folder, { recursive: true });
});

/** Returns the answer while the file contains `content`. */
async function answerWith(content: unknown, mode = 0o600) {
  writeFileSync(file, JSON.stringify(content));
  chmodSync(file, mode);
  const image = `${registry.host}/podwright/agent`;
  const store = await openEvidenceStore(':memory:');
  const releases = createReleases({
    store,
    clock: systemClock,
    signer,
    graceMs: 0,
    log: createLog({ name: 'test', level: 'silent' }),
    readTag: createReadTag(systemClock),
    source: {
      image,
      tag: 'stable',
      keyId: signer.hotkey,
      firstPermille: 1_000,
      expiryMs: 60_000,
      ...(content === null ? {} : { readLogin: () => readRegistryLogin(file, image, VARIABLE) }),
    },
  });
  const answer = releases.current().finally(() => store.destroy());
  return answer;
}

it('reads the tag with the login from the file', async () => {
  expect(await answerWith(REGISTRY_LOGIN)).toMatchObject({ digest });
});

it.each([
  ['no login', null, 0o600, /the registry requires a login: set VALIDATOR_AGENT_LOGIN_FILE/],
  [
    'a wrong login',
    { ...REGISTRY_LOGIN, password: 'pass-of-others' },
    0o600,
    /rejects the login in VALIDATOR_AGENT_LOGIN_FILE: correct/,
  ],
  [
    'a file that others may read',
    REGISTRY_LOGIN,
    0o644,
    /VALIDATOR_AGENT_LOGIN_FILE: .*may be read by others.*chmod 600/,
  ],
  [
    'a file of another form',
    ['pass-of-others'],
    0o600,
    /VALIDATOR_AGENT_LOGIN_FILE: .* does not hold a login like/,
  ],
])('fails with 502 and a remedy without the secret: %s', async (_, content, mode, message) => {
  const error = await answerWith(content, mode).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({
    code: 'upstream_unavailable',
    message: expect.stringMatching(message),
  });
  expect(String(error)).not.toMatch(/pass-of/);
});
