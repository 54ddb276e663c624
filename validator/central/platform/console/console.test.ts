import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

/** Accept header of Firefox. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const BUILD = '0123456789abcdef';
const PAGE = '<!doctype html><title>console</title>';
const SCRIPT = 'console.log(1)';

let folder: string;
let central: TestCentral;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-built-'));
  central = await createTestCentral({ consoleFolder: folder });
});
afterAll(async () => {
  await central.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => build(BUILD));

function build(key: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, key, 'assets'), { recursive: true });
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, key, name), content);
    writeFileSync(join(folder, key, `${name}.gz`), gzipSync(content));
    writeFileSync(join(folder, key, `${name}.br`), brotliCompressSync(content));
  };
  write('index.html', PAGE);
  write('assets/main-x1.js', SCRIPT);
  writeFileSync(join(folder, key, 'secret.js'), 'no asset');
  writeFileSync(join(folder, 'current'), `${key}\n`);
}

const read = (url: string, headers: Record<string, string> = { accept: BROWSER }) =>
  central.server.inject({ url, headers });

describe('the page', () => {
  it.each(['/', '/pods', '/pods/1/logs?x=1', '/validator/epochs/3'])('is at %s', async (url) => {
    const { statusCode, headers, body } = await read(url);
    expect([statusCode, body]).toEqual([200, PAGE]);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      vary: 'Accept, Accept-Encoding',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
  });

  it('permits no inline code, no inline style and no other origin', async () => {
    const policy = String((await read('/')).headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  });

  it.each(['/api/none', '/portal/none', '/docs/none', '/assets/none.js'])(
    'is not at %s, which belongs to the API',
    async (url) => {
      const { statusCode, headers } = await read(url);
      expect([statusCode, headers['content-type']]).toEqual([404, expect.stringMatching(/json/)]);
    },
  );

  it('is not sent to clients of the API', async () => {
    const root = await read('/', { accept: 'application/json' });
    expect(root.json()).toMatchObject({ status: 'ok' });
    expect((await read('/pods', { accept: '*/*' })).statusCode).toBe(404);
    const posted = await central.server.inject({
      method: 'POST',
      url: '/pods',
      headers: { accept: BROWSER },
    });
    expect(posted.statusCode).toBe(404);
  });

  it('is replaced by the start page where the console is not built', async () => {
    rmSync(join(folder, 'current'));
    expect((await read('/')).body).toContain('npm run setup');
    expect((await read('/pods')).statusCode).toBe(404);
  });
});

describe('an asset', () => {
  it.each([
    ['br', 'gzip, deflate, br'],
    ['gzip', 'gzip, br;q=0'],
    [undefined, ''],
    [undefined, 'deflate'],
  ])('has the encoding %s for Accept-Encoding %j', async (encoding, accepted) => {
    const { statusCode, headers } = await read('/assets/main-x1.js', {
      'accept-encoding': accepted,
    });
    expect([statusCode, headers['content-encoding']]).toEqual([200, encoding]);
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
  });

  it('is that of the newest build', async () => {
    build('fedcba9876543210');
    expect((await read('/assets/main-x1.js')).body).toBe(SCRIPT);
  });

  it.each([
    '/assets/..%2Fsecret.js',
    '/assets/%2e%2e%2fsecret.js',
    '/assets/main-x1.js.gz',
    '/assets/.hidden.js',
  ])('is not %s', async (url) => {
    expect((await read(url)).statusCode).toBe(404);
  });

  it.each(['../..', '/etc', ''])('is not read from a build named %j', async (name) => {
    writeFileSync(join(folder, 'current'), name);
    expect((await read('/assets/main-x1.js')).statusCode).toBe(404);
  });
});
