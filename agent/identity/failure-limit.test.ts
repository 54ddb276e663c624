import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { BURST, createFailureLimit, REFILL_MS } from './failure-limit.ts';

function setUp(maxAddresses?: number) {
  const clock = createManualClock();
  const limit = createFailureLimit(clock, maxAddresses);
  const exhaust = (address: string) => {
    for (let n = 0; n < BURST; n += 1) limit.failed(address);
  };
  return { clock, limit, exhaust };
}

it('forgives one failure at a time, and all of them after a while', async () => {
  const { clock, limit, exhaust } = setUp();
  exhaust('192.0.2.1');
  limit.failed('192.0.2.1');
  expect(limit.allows('192.0.2.1')).toBe(false);
  await clock.advance(REFILL_MS);
  expect(limit.allows('192.0.2.1')).toBe(true);
  limit.failed('192.0.2.1');
  expect(limit.allows('192.0.2.1')).toBe(false);
  await clock.advance(100 * BURST * REFILL_MS);
  for (let n = 0; n < BURST; n += 1) {
    expect(limit.allows('192.0.2.1')).toBe(true);
    limit.failed('192.0.2.1');
  }
  expect(limit.allows('192.0.2.1')).toBe(false);
});

it('counts the addresses of one IPv6 network as one, and IPv4 ones each', () => {
  const { limit, exhaust } = setUp();
  exhaust('2001:db8:1:2::1');
  expect(limit.allows('2001:db8:1:2:ffff::9')).toBe(false);
  expect(limit.allows('2001:db8:1:3::1')).toBe(true);
  // Written short: its groups of zeros are no part of the host.
  exhaust('2001:db8::5:6:7:8');
  expect(limit.allows('2001:db8::9:6:7:8')).toBe(false);
  exhaust('::ffff:192.0.2.1');
  expect(limit.allows('::ffff:192.0.2.2')).toBe(true);
});

it('remembers so many addresses, and forgets the one that failed longest ago', () => {
  const { limit, exhaust } = setUp(2);
  exhaust('192.0.2.1');
  exhaust('192.0.2.2');
  limit.failed('192.0.2.1');
  exhaust('192.0.2.3');
  const allowed = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(limit.allows);
  expect(allowed).toEqual([false, true, false]);
});
