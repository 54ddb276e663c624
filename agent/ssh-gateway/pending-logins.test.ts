import { expect, it } from 'vitest';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { createPendingLogins, type NewLogin } from './pending-logins.ts';

const LIMITS = { perSource: 4, perFailingSource: 2, perPod: 6, total: 10 };

function scene(seed = 1) {
  const logins = createPendingLogins(createSeededRandom(seed), LIMITS);
  const open = new Map<string, string>();
  let number = 0;
  return {
    logins,
    /** Connects; returns the name of the connection. */
    connect(podId: string, address: string, more: Partial<NewLogin> = {}) {
      number += 1;
      const name = `${podId} ${address} ${number}`;
      open.set(name, address);
      const close = () => void open.delete(name);
      const remove = logins.add({ podId, address, isFailing: false, close, ...more });
      return { name, remove };
    },
    isOpen: ({ name }: { name: string }) => open.has(name),
    of: (part: string) => [...open.keys()].filter((name) => name.includes(part)).length,
  };
}

it('never closes the connection of the owner because of a flood from one other source', () => {
  const { connect, isOpen, of } = scene();
  for (let round = 0; round < 50; round += 1) connect('pod', '203.0.113.1');
  const owner = connect('pod', '203.0.113.2');
  for (let round = 0; round < 50; round += 1) connect('pod', '203.0.113.1');
  expect(isOpen(owner)).toBe(true);
  expect(of('203.0.113.1')).toBe(LIMITS.perSource);
});

it('counts the addresses of an IPv6 network as one source', () => {
  const { connect, of } = scene();
  for (let host = 1; host < 20; host += 1) connect('pod', `2001:db8::${host}`);
  expect(of('2001:db8::')).toBe(LIMITS.perSource);
});

it('always accepts a new connection, and mostly keeps it, while many sources flood the pod', () => {
  let kept = 0;
  for (let seed = 1; seed <= 200; seed += 1) {
    const { connect, isOpen } = scene(seed);
    for (let host = 1; host <= 30; host += 1) connect('pod', `198.51.100.${host}`);
    const owner = connect('pod', '203.0.113.2');
    expect(isOpen(owner)).toBe(true);
    connect('pod', '198.51.100.99');
    if (isOpen(owner)) kept += 1;
  }
  // Each further connection closes one of six at random.
  expect(kept / 200).toBeGreaterThan(0.7);
});

it('closes connections of the pod under attack first when the gateway is full', () => {
  const { connect, isOpen, of } = scene();
  const others = ['a', 'b', 'c', 'd'].map((pod, index) => connect(pod, `203.0.113.${index + 1}`));
  for (let host = 1; host <= 60; host += 1) connect('pod', `198.51.100.${host}`);
  connect('late', '203.0.113.9');
  expect(others.every(isOpen)).toBe(true);
  expect(of('pod ')).toBe(LIMITS.perPod - 1);
});

it('limits a source with failed logins more, without refusing its next connection', () => {
  const { connect, isOpen, of } = scene();
  for (let round = 0; round < 9; round += 1) connect('pod', '203.0.113.1', { isFailing: true });
  expect(of('203.0.113.1')).toBe(LIMITS.perFailingSource);
  expect(isOpen(connect('pod', '203.0.113.1', { isFailing: true }))).toBe(true);
});

it('does not count a connection that has logged in or ended', () => {
  const { connect, isOpen, logins } = scene();
  const loggedIn = Array.from({ length: LIMITS.perSource }, () => connect('pod', '203.0.113.1'));
  for (const { remove } of loggedIn) remove();
  expect(logins.count()).toBe(0);
  for (let round = 0; round < 9; round += 1) connect('pod', '203.0.113.1');
  expect(loggedIn.every(isOpen)).toBe(true);
});
