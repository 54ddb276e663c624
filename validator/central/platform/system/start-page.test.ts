import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '#shared/runtime/version.ts';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

/** Accept header of Firefox. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

let central: TestCentral;
beforeAll(async () => {
  central = await createTestCentral();
});
afterAll(() => central.close());

const read = (url: string, headers: Record<string, string>) =>
  central.server.inject({ url, headers });

describe.each(['/', '/portal', '/portal/'])('GET %s', (url) => {
  it('is a page for browsers, whose links respond with 200', async () => {
    const page = await read(url, { accept: BROWSER, host: 'market.example.org' });
    expect([page.statusCode, page.headers['vary']]).toEqual([200, 'Accept']);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.body).toContain(`Podwright ${VERSION}`);
    expect(page.body).toContain('http://market.example.org/');
    const links = [...page.body.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link);
    expect(links).toHaveLength(3);
    for (const link of links) {
      expect([link, (await read(link, { accept: BROWSER })).statusCode]).toEqual([link, 200]);
    }
  });

  it('permits only the style of the page', async () => {
    const { headers, body } = await read(url, { accept: BROWSER });
    const style = /<style>([^<]+)<\/style>/.exec(body)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`style-src 'sha256-${hash}'`);
    expect(policy).not.toContain('unsafe');
    expect(body).not.toMatch(/<script|<img|<link|<iframe| src=| on\w+=/);
  });

  it.each(['application/json', '*/*'])('is JSON for clients that accept %s', async (accept) => {
    const { statusCode, headers, body } = await read(url, { accept });
    expect(statusCode).toBe(200);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(JSON.parse(body)).toEqual({ status: 'ok', name: 'podwright', version: VERSION });
  });

  it('does not repeat a malformed Host header', async () => {
    const { body } = await read(url, { accept: BROWSER, host: 'a"<b>' });
    expect(body).toContain('https://HOST/');
    expect(body).not.toContain('<b>');
  });
});
