import { describe, expect, it } from 'vitest';
import { createRedact, MAX_KNOWN_SECRETS } from './redact.ts';

const KEY =
  '-----BEGIN OPENSSH PRIVATE KEY-----\nhushAAAA\nhushBBBB\n-----END OPENSSH PRIVATE KEY-----';

describe('a secret of unknown value', () => {
  const redact = createRedact([]);

  it.each([
    'Authorization: Bearer hush.hush',
    '{"authorization":"hush one two"}',
    '{"headers":{"x-api-key":"hush"},"n":1}',
    "curl -H 'X-API-Key: hush' x",
    'Cookie: a=hush; b=hush',
    'X-Registry-Auth: hush=',
    'sent Basic aHVzaDpodXNo',
    'RESTIC_PASSWORD=hush restic backup',
    '{"password":"hu\\"sh","user":"me"}',
    '{"line":"{\\"registry_password\\":\\"hush\\"}"}',
    'api_key: hush',
    'postgres://me:hush@db.example/x?sslmode=on',
    'GET /lab?token=hush HTTP/1.1',
    'GET /v1/pods/x/terminal?ticket=hush HTTP/1.1',
    '{"session_id":"hush","pass":"hush"}',
    'passphrase=hush pwd=hush pass: hush',
    'paid with sk_hush_0123456789abc',
    'lpk_hush0123456, sk_live_hush0123 whsec_hush-1234567',
    'ghp_hush0123456789 AKIAhush01234567',
    'eyJhbGciOiJIUzI1.hush_hush.hush',
    KEY,
    `key: ${JSON.stringify(KEY)}`,
    KEY.slice(0, 60),
  ])('hides the secret in %s', (text) => {
    expect(redact(text)).not.toMatch(/hu\\?"?sh|aHVzaD/);
    expect(redact(text)).toContain('[hidden]');
  });

  it.each([
    'pod 3f9f41a6-0001-4000-8000-000000000001 is running at 127.0.0.1:8080',
    'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    '{"level":30,"msg":"listening","port":8080}',
    'https://registry.example/v2/ answered 401',
    'a compass: north; sessions: 3; task_0123456789 passed: all',
  ])('leaves %s as it is', (text) => {
    expect(redact(text)).toBe(text);
  });
});

it('hides a known secret in plain text, JSON, URLs, base64 and line by line', () => {
  const secret = 'a "quoted" value\nand a second line';
  const redact = createRedact([secret, 'x', '']);
  const form = new URLSearchParams({ secret }).toString();
  const inAddresses = [encodeURIComponent(secret), form];
  for (const text of [
    ...inAddresses,
    secret,
    JSON.stringify({ secret }),
    btoa(secret),
    'at and a second line ?',
  ]) {
    expect(redact(`before ${text} x after`)).not.toMatch(/quoted|second|cXVvdGVk|c2Vjb25k/);
    expect(redact(`before ${text} x after`)).toMatch(/^before .*x after$/);
  }
});

it('redacts long text without spaces in bounded time, and rejects too many secrets', () => {
  const long = 'secret'.repeat(100_000);
  expect(createRedact([])(long)).toBe(long);
  const many = Array.from({ length: MAX_KNOWN_SECRETS + 1 }, (_, index) => `secret-${index}`);
  expect(() => createRedact(many)).toThrow(RangeError);
});
