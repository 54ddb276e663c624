import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

let central: TestCentral;
beforeAll(async () => {
  central = await createTestCentral();
});
afterAll(() => central.close());

const read = (url: string) => central.server.inject({ url });

it('serves a page that loads all scripts, styles and descriptions from this server', async () => {
  const page = await read('/docs');
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url);
  expect(files).toHaveLength(6);
  for (const url of files) {
    const { statusCode, body, headers } = await read(url);
    expect([url, statusCode, body.length > 0]).toEqual([url, 200, true]);
    expect(headers['content-type']).toMatch(/^(?:text\/css|text\/javascript|image\/png)/);
  }
  const start = (await read('/docs/start.js')).body;
  const urls = [...start.matchAll(/"url":"([^"]+)"/g)].map(([, url = '']) => url);
  expect(urls).toEqual(['/api/openapi.json', '/portal/openapi.json']);
  for (const url of urls) {
    expect((await read(url)).json()).toMatchObject({
      openapi: '3.1.0',
      info: { version: '1.0.0' },
    });
  }
});

it('permits neither inline code nor other hosts', async () => {
  const { headers, body } = await read('/docs/');
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("connect-src 'self'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(body).not.toMatch(/<script>|<style| on\w+=|https?:\/\//);
});

it('does not serve other files of the package', async () => {
  for (const url of ['/docs/package.json', '/docs/index.html', '/docs/../package.json']) {
    expect([url, (await read(url)).statusCode]).toEqual([url, 404]);
  }
});
