import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createPasswords } from './password.ts';

it('hashes to an argon2id PHC string and verifies the password', async () => {
  const passwords = createPasswords({ random: systemRandom });
  const hash = await passwords.hash('päss wörd');
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(await passwords.hash('päss wörd')).not.toBe(hash);
  expect(await passwords.matches('päss wörd', hash)).toBe(true);
  expect(await passwords.matches('päss word', hash)).toBe(false);
  expect(await passwords.matches('', hash)).toBe(false);
  expect(await passwords.matches('anything', null)).toBe(false);
});

it('verifies a hash of another implementation', async () => {
  const passwords = createPasswords({ random: systemRandom });
  // From the test vectors of the reference implementation (phc-winner-argon2, src/test.c).
  const otherHash =
    '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';
  expect(await passwords.matches('password', otherHash)).toBe(true);
  await expect(passwords.matches('password', 'plain')).rejects.toThrow(/PHC/);
});

it('takes as long to compare for an unknown account as for a known account', async () => {
  const passwords = createPasswords({ random: systemRandom });
  const hash = await passwords.hash('secret secret');
  const measure = async (stored: string | null) => {
    const times: number[] = [];
    for (let turn = 0; turn < 7; turn += 1) {
      const from = performance.now();
      await passwords.matches('wrong wrong', stored);
      times.push(performance.now() - from);
    }
    return times.toSorted((a, b) => a - b)[3] ?? 0;
  };
  const [knownMs, unknownMs] = [await measure(hash), await measure(null)];
  // The bound is low because the host may be busy: without the dummy hash the ratio would be about 0.001.
  expect(unknownMs / knownMs).toBeGreaterThan(0.2);
});

it('rejects comparisons while the queue is full', async () => {
  const passwords = createPasswords({ random: systemRandom });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 105 }, () => passwords.matches('x', null)),
  );
  const refused = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason] : [],
  );
  expect(refused).toHaveLength(3);
  expect(refused[0]).toMatchObject({ code: 'rate_limited', status: 429 });
  expect(await passwords.matches('x', null)).toBe(false);
});
