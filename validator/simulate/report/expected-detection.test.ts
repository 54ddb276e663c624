import { expect, it } from 'vitest';
import { DEFAULT_POLICY_FILE, readAnyWeightPolicy } from '../../weights/weight-policy.ts';
import { expectedDetection } from './expected-detection.ts';

/** 2027-01-01T00:00:00Z, when most checks of the policy are in force. */
const START_MS = 1_798_761_600_000;
const options = {
  atMs: START_MS,
  weights: readAnyWeightPolicy(DEFAULT_POLICY_FILE),
};

it('names the checks that find a cheat, and the inspections until then', () => {
  expect(expectedDetection('closed_ports', options)).toEqual({
    outcome: 'fails',
    checks: ['ports PORTS_CLOSED'],
    inspections: 2,
  });
  expect(expectedDetection('slow_cards', options)).toMatchObject({
    outcome: 'no weight',
    checks: ['proof_age PROOF_MISSING'],
  });
  expect(expectedDetection('driver_library', options)).toEqual({
    outcome: 'passes',
    checks: [],
    inspections: null,
  });
});

it('judges under the settings of a simulation, which measures no lines', () => {
  expect(expectedDetection('slow_line', options).outcome).toBe('passes');
});

it('rejects an unknown cheat', () => {
  expect(() => expectedDetection('none', options)).toThrow(RangeError);
});
