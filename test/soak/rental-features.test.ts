import { expect, it } from 'vitest';
import { podSpec } from '../fakes/agents/test-agent.ts';
import type { ObservedRental } from '../fakes/scenes/observed-market.ts';
import { learnEncoding } from './rental-features.ts';

function rentalOf(comment: string, change: Partial<ObservedRental['login']> = {}): ObservedRental {
  return {
    executorId: 'one',
    spec: podSpec({ ssh_public_keys: [`ssh-ed25519 AAAA ${comment}`] }),
    specBytes: 600,
    requests: [{ method: 'GET', path: '/logs', afterMs: 5 }],
    launchedMs: 0,
    login: {
      connectedMs: 1_000,
      version: 'OpenSSH_9.2p1',
      algorithms: 'a',
      attempts: ['none'],
      variables: {},
      channel: 'exec',
      hasTerminal: false,
      keysMs: 1_010,
      loggedInMs: 1_020,
      commandMs: 1_030,
      bytes: 2_000,
      packets: 7,
      ...change,
    },
  };
}

it('has a feature for each sign of a rental: key, client, times and members of the launch', () => {
  const { names, rowOf } = learnEncoding([
    rentalOf('ann@laptop'),
    rentalOf('ben@laptop', { version: 'other', connectedMs: 2_000 }),
  ]);
  const [ann, ben] = [rentalOf('ann@laptop'), rentalOf('ben@laptop', { version: 'other' })].map(
    rowOf,
  );
  const differing = names.filter((_, at) => ann?.[at] !== ben?.[at]);
  expect(differing).toEqual(
    expect.arrayContaining([
      'comment = ann@laptop',
      'comment user = ben',
      'SSH version = OpenSSH_9.2p1',
      'SSH version = other',
    ]),
  );
  expect(names).toEqual(
    expect.arrayContaining([
      'spec.limits.pids',
      'login ms',
      'requests = GET /logs',
      'launch bytes',
    ]),
  );
});

it('learns words from the training only', () => {
  const { names, rowOf } = learnEncoding([rentalOf('ann@laptop')]);
  expect(names).not.toContain('comment = ben@laptop');
  expect(rowOf(rentalOf('ben@laptop')).length).toBe(names.length);
});
