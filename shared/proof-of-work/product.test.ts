import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { keystream } from './keystream.ts';
import { matrixRows, productRow, rowBytes, rowFrom } from './product.ts';
import { nextSeed, partSeed, seedOf } from './seed.ts';

const CHALLENGE = {
  nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
  executorId: '3f9f41a6-0001-4000-8000-000000000001',
  device: 'cpu',
  purpose: 'product',
} as const;
const SEED = seedOf(CHALLENGE);

it('returns the same bytes of the keystream at every offset', () => {
  const whole = keystream(SEED, 0, 4_096);
  for (const [offset, length] of [
    [16, 100],
    [2_048, 17],
    [4_080, 16],
  ] as const) {
    expect(keystream(SEED, offset, length)).toEqual(whole.subarray(offset, offset + length));
  }
  expect(() => keystream(SEED, 8, 16)).toThrow('8 is not a multiple of 16');
});

it('derives a different seed for every challenge, device, part and round', () => {
  const others = [
    { ...CHALLENGE, nonce: 'AAAAAAAAAAAAAAAAAAAAAB' },
    { ...CHALLENGE, executorId: 'other' },
    { ...CHALLENGE, device: 'GPU-1' },
    { ...CHALLENGE, purpose: 'disk' as const },
  ].map(seedOf);
  const seeds = [SEED, ...others, partSeed(SEED, 'A'), partSeed(SEED, 'B'), nextSeed(SEED, SEED)];
  expect(new Set(seeds.map((seed) => seed.toString('hex'))).size).toBe(seeds.length);
  expect(() => seedOf({ ...CHALLENGE, device: 'a\nb' })).toThrow('a field contains a line feed');
});

it('computes the product of two matrices as defined', () => {
  const n = 32;
  const whole = { n, from: 0, to: n };
  const [a, b] = [matrixRows(SEED, 'A', whole), matrixRows(SEED, 'B', whole)];
  expect(Math.max(...a)).toBe(15);
  for (let i = 0; i < n; i += 1) {
    const aRow = matrixRows(SEED, 'A', { n, from: i, to: i + 1 });
    expect(aRow).toEqual(a.slice(i * n, (i + 1) * n));
    const sums = Array.from({ length: n }, (_, j) =>
      Array.from({ length: n }, (__, k) => (a[i * n + k] ?? 0) * (b[k * n + j] ?? 0)).reduce(
        (sum, product) => sum + product,
      ),
    );
    const row = productRow(aRow, b);
    expect([...row]).toEqual(sums);
    expect(rowFrom(rowBytes(row), n)).toEqual(row);
  }
  expect(rowFrom(Buffer.alloc(5), n)).toBeNull();
});

// Reference values for other implementations, such as on a GPU.
it('computes the known product of a fixed seed', () => {
  const n = 64;
  const b = matrixRows(SEED, 'B', { n, from: 0, to: n });
  const hash = createHash('sha256');
  for (let i = 0; i < n; i += 1) {
    hash.update(rowBytes(productRow(matrixRows(SEED, 'A', { n, from: i, to: i + 1 }), b)));
  }
  expect(SEED.toString('hex')).toMatchInlineSnapshot(
    `"6e1982f38bcd59a724707051514b51f9a0f2076bb4f31bb30b61907dfd03df6f"`,
  );
  expect(hash.digest('hex')).toMatchInlineSnapshot(
    `"9a6897bd0d8978b3898c2f1dbfdd998418f2312994e10841c3c70e201ac4775a"`,
  );
});
