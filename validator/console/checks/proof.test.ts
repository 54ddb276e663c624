import { createHash } from 'node:crypto';
import { base58, hex } from '@scure/base';
import { getPublicKey, secretFromSeed, sign } from '@scure/sr25519';
import { expect, it } from 'vitest';
import type { SignedEvidence } from '../api/api.gen.ts';
import { proveEvidence } from './proof.ts';
import { isSignedBy } from './signature.ts';

const secret = secretFromSeed(new Uint8Array(32).fill(7));
/** With a checksum of zeros, which the verification does not need. */
const signer = base58.encode(Uint8Array.of(42, ...getPublicKey(secret), 0, 0));
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const ports = { isSignedBy, sha256Hex: async (text: string) => sha256(text) };

function evidence(): SignedEvidence {
  const facts = { executor_id: 'n', seq: 1, validator: signer, verdict: 'ok' } as const;
  const document = JSON.stringify(facts);
  const id = sha256(document);
  const header = JSON.stringify({ ...facts, id });
  const signed = `podwright-evidence-v2\n${header}`;
  return {
    id,
    executor_id: 'n',
    seq: 1,
    verdict: 'ok',
    finished_at: '2026-11-27T07:00:00',
    signed_as: 'podwright-evidence-v2\n',
    header,
    document,
    dropped_at: null,
    signature: `0x${hex.encode(sign(secret, new TextEncoder().encode(signed)))}`,
  };
}

it('accepts a signed record, and names its key', async () => {
  expect(await proveEvidence(evidence(), ports)).toMatchObject({ isGood: true, signer });
});

it('rejects a changed byte of the document, the header, the signature or the shown facts', async () => {
  const good = evidence();
  const changed: SignedEvidence[] = [
    { ...good, document: `${good.document} ` },
    { ...good, header: `${good.header} ` },
    { ...good, signature: good.signature.replace(/.$/, (last) => (last === '0' ? '1' : '0')) },
    { ...good, verdict: 'failed' },
    { ...good, header: '{' },
  ];
  for (const record of changed) {
    expect((await proveEvidence(record, ports)).isGood).toBe(false);
  }
});

it('verifies a dropped document by its header, and not one that is only missing', async () => {
  const dropped = { ...evidence(), document: null, dropped_at: '2026-11-27T08:00:00' };
  expect((await proveEvidence(dropped, ports)).isGood).toBe(true);
  expect((await proveEvidence({ ...dropped, dropped_at: null }, ports)).isGood).toBe(false);
});

it('does not call a record verified if the browser offers no hash', async () => {
  const without = { ...ports, sha256Hex: async () => null };
  expect((await proveEvidence(evidence(), without)).isGood).toBeNull();
});
