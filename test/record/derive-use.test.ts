import { expect, it } from 'vitest';
import copied from '../../validator/probes/ordinary-use.json' with { type: 'json' };
import { halfOf, ORDINARY_RENTALS, type OrdinaryRentals } from '../fixtures/ordinary-rentals.ts';
import { deriveUse } from './derive-use.ts';

const REQUEST: OrdinaryRentals['requests'][number] = {
  template: 0,
  gpu_count: null,
  initial_port_count: null,
  termination_hours: null,
  max_spend_usd: null,
  idle_shutdown_minutes: null,
  enable_jupyter: false,
  others: [],
  pod_name: 'mine',
  test: 'a.test.ts',
};
const key = (comment: string) => ({ type: 'ed25519' as const, bits: 256, comment });

it('is what hidden rentals copy: the first half of the recording, and nothing else', () => {
  expect(copied).toEqual(deriveUse(halfOf(ORDINARY_RENTALS, 'first')));
});

it('divides a recording into two halves without a common entry', () => {
  const { keys } = ORDINARY_RENTALS;
  const first = halfOf(ORDINARY_RENTALS, 'first').keys;
  const second = halfOf(ORDINARY_RENTALS, 'second').keys;
  expect([...first, ...second].length).toBe(keys.length);
  expect(first.filter((each) => second.includes(each))).toEqual([]);
});

it('counts equal requests, and leaves out those that need a template or data of the account', () => {
  const { requests, pod_names: names } = deriveUse({
    requests: [
      REQUEST,
      { ...REQUEST, test: 'b.test.ts' },
      { ...REQUEST, gpu_count: 2, enable_jupyter: true },
      { ...REQUEST, template: null },
      { ...REQUEST, others: ['volume_id'] },
    ],
    keys: [],
    courses: [],
  });
  expect(requests).toEqual([
    { count: 2, template: 0 },
    { count: 1, template: 0, gpu_count: 2, enable_jupyter: true },
  ]);
  expect(names).toEqual(['mine']);
});

it('replaces the parts of a comment that differ from owner to owner, or from computer to computer', () => {
  const comments = [
    'root@0123456789ab',
    'ann@DESKTOP-AB12CD3',
    'ubuntu@ip-172-31-4-250',
    'ann@laptop',
    'ann@Anns-MacBook-Pro.local',
  ];
  const { keys, users } = deriveUse({ requests: [], keys: comments.map(key), courses: [] });
  expect(users).toEqual(['ann']);
  expect(keys.map(({ comment }) => comment)).toEqual([
    'root@{hex}',
    '{user}@DESKTOP-{id}',
    'ubuntu@ip-172-31-{byte}-{byte}',
    '{user}@laptop',
    '{user}@{User}s-MacBook-Pro.local',
  ]);
});
