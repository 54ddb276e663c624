import { expect, it } from 'vitest';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import { type Cidr, chooseSubnet, formatCidr, parseCidr, parsePool, poolSize } from './subnets.ts';

function poolOf(text: string): Cidr {
  const pool = parsePool(text);
  if (pool === null) throw new Error(`${text} is no pool`);
  return pool;
}

/** Leases all subnets of a pool and releases none. */
function exhaust(pool: Cidr, podIdOf: () => string): string[] {
  const taken = new Set<string>();
  for (;;) {
    const subnet = chooseSubnet(pool, podIdOf(), taken);
    if (subnet === null) return [...taken];
    expect(taken).not.toContain(subnet);
    taken.add(subnet);
  }
}

it.each(['10.201.0.0/24', '192.168.64.0/22', '172.16.0.0/28'])(
  'assigns every subnet of %s once, aligned and inside the pool, whatever the pod ids',
  (text) => {
    const pool = poolOf(text);
    const random = createSeededRandom(7);
    const subnets = exhaust(pool, () => random.uuid()).map((subnet) => poolOf(subnet));
    expect(subnets).toHaveLength(poolSize(pool));
    const last = pool.base + 2 ** (32 - pool.prefix) - 1;
    for (const { base, prefix } of subnets) {
      expect(prefix).toBe(28);
      expect(base % 16).toBe(0);
      expect(base).toBeGreaterThanOrEqual(pool.base);
      expect(base + 15).toBeLessThanOrEqual(last);
    }
  },
);

it('reuses a released subnet, and chooses the same one for the same pod', () => {
  const pool = poolOf('10.0.0.0/26');
  const all = exhaust(pool, () => 'f'.repeat(32));
  for (const free of all) {
    const taken = new Set(all.filter((subnet) => subnet !== free));
    expect(chooseSubnet(pool, '0'.repeat(32), taken)).toBe(free);
  }
  const podId = '6f1c2c1e-0000-4000-8000-00000000002a';
  expect(chooseSubnet(pool, podId, new Set())).toBe('10.0.0.32/28');
});

it('parses aligned IPv4 ranges only', () => {
  for (const text of ['0.0.0.0/0', '10.201.0.0/16', '255.255.255.255/32', '192.168.7.8/29']) {
    const range = parseCidr(text);
    expect(range === null ? null : formatCidr(range)).toBe(text);
  }
  for (const text of ['', '10.0.0.0', '10.0.0.1/24', '256.0.0.0/8', '10.0.0.0/33', 'a/8', '::/8']) {
    expect(parseCidr(text)).toBeNull();
  }
  for (const text of ['10.0.0.0/29', '8.0.0.0/7', '10.0.0.0/32'])
    expect(parsePool(text)).toBeNull();
});
