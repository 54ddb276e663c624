import { expect, it } from 'vitest';
import { canonicalQuery, canonicalRequest, sha256Hex } from './signed-request.ts';

const PARTS = {
  method: 'post',
  rawPath: '/v1/pods/a%20b',
  rawQuery: 'b=2&a=1',
  bodySha256: sha256Hex('{"n":1}'),
  timestampMs: 1_795_218_600_123,
  nonce: 'AAECAwQFBgcICQoLDA0ODw',
  audience: '3f9f41a6-0001-4000-8000-000000000001',
  signer: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
};

it('writes the canonical text as nine lines without a final line feed', () => {
  expect(canonicalRequest(PARTS)).toBe(
    [
      'podwright-req-v1',
      'POST',
      '/v1/pods/a%20b',
      'a=1&b=2',
      '2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd',
      '1795218600123',
      'AAECAwQFBgcICQoLDA0ODw',
      '3f9f41a6-0001-4000-8000-000000000001',
      '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    ].join('\n'),
  );
});

it('writes an empty line for an empty query', () => {
  expect(canonicalRequest({ ...PARTS, rawQuery: '' }).split('\n')[3]).toBe('');
});

it.each([
  ['', ''],
  ['b=2&a=2&a=1', 'a=1&a=2&b=2'],
  ['a', 'a='],
  ['a=b+c&d=%2f', 'a=b%20c&d=%2F'],
  ["a=!'()*~", 'a=%21%27%28%29%2A~'],
  ['ü=%C3%BC', '%C3%BC=%C3%BC'],
])('canonicalizes the query %j', (query, canonical) => {
  expect(canonicalQuery(query)).toBe(canonical);
  expect(canonicalQuery(canonical)).toBe(canonical);
});

it('uses the SHA-256 of the empty text for an empty body', () => {
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  expect([sha256Hex(''), sha256Hex(new Uint8Array())]).toEqual([empty, empty]);
});
