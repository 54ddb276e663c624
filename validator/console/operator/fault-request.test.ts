import { expect, it } from 'vitest';
import { FAULT_KINDS, faultRequest, NO_FAULT, targetOf } from './fault-request.ts';

it.each([
  [
    { kind: 'dies', executor_id: 'a', region: 'eu', amount: 60 },
    { kind: 'dies', executor_id: 'a', lasts_minutes: 60 },
  ],
  [
    { ...NO_FAULT, kind: 'region', region: 'eu', amount: 5 },
    { kind: 'region', region: 'eu', lasts_minutes: 5 },
  ],
  [
    { ...NO_FAULT, kind: 'central', amount: 5 },
    { kind: 'central', lasts_minutes: 5 },
  ],
  [
    { ...NO_FAULT, kind: 'leave', amount: 100 },
    { kind: 'leave', share_permille: 100 },
  ],
  [
    { ...NO_FAULT, kind: 'clock', amount: -30 },
    { kind: 'clock', by_seconds: -30 },
  ],
])('sends only the fields of the kind of %j', (values, body) => {
  expect(faultRequest(values)).toEqual(body);
});

it('has a unit for every kind', () => {
  for (const { value } of FAULT_KINDS) expect(targetOf(value).unit.field).not.toBe('');
});
