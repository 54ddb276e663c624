import { expect, it } from 'vitest';
import { localFieldOf } from '../browser/clock.ts';
import { timeOfField } from './local-time.ts';

it('returns the entered local time as UTC', () => {
  const epochMs = 1_800_000_000_000;
  expect(timeOfField(localFieldOf(epochMs))).toBe('2027-01-15T08:00:00.000Z');
});

it('returns null for an empty field', () => expect(timeOfField('')).toBeNull());
