import { describe, expect, it } from 'vitest';
import { checkOf, comparePlace, locationFrom } from './place.plan.ts';
import type { EnterPlace } from './place.schemas.ts';

const BERLIN = { lat: 52.52, lon: 13.405 };
const SYDNEY = { lat: -33.87, lon: 151.21 };
const at = (change: Partial<EnterPlace> = {}) => locationFrom({ country_code: 'DE', ...change });
const listed = (change: object = {}) => ({
  countryCode: 'DE',
  lat: null,
  lon: null,
  accuracyKm: null,
  ...change,
});
const none = { address: null, roundTrips: [] };

it('shows the English name of the country', () => {
  expect(at()).toMatchObject({ country: 'Germany', country_code: 'DE', region: null, lat: null });
});

describe('the table of addresses', () => {
  it.each([
    ['the same country', at(), listed(), 'confirmed'],
    ['another country', at(), listed({ countryCode: 'AU' }), 'contradicted'],
    [
      'coordinates nearby',
      at(BERLIN),
      listed({ lat: 53.55, lon: 10, accuracyKm: 20 }),
      'confirmed',
    ],
    ['distant coordinates', at(BERLIN), listed({ lat: 48.14, lon: 11.58 }), 'entered'],
    [
      'distant coordinates within the stated radius',
      at(BERLIN),
      listed({ lat: 48.14, lon: 11.58, accuracyKm: 300 }),
      'confirmed',
    ],
    ['coordinates that the provider left out', at(), listed(SYDNEY), 'confirmed'],
  ])('compares with %s', (_, place, address, check) => {
    expect(checkOf(comparePlace(place, { ...none, address }))).toBe(check);
  });
});

describe('a round trip', () => {
  it.each([
    // 16,000 km take light 107 ms there and back.
    ['is too short for the distance', at(SYDNEY), 100, 'contradicted'],
    ['is long enough for the distance', at(SYDNEY), 110, 'entered'],
    ['proves that the node is near', at(BERLIN), 1.3, 'confirmed'],
    [
      'is shorter than a round trip to the city that was entered',
      at({ lat: 52.4, lon: 13.06 }),
      0.05,
      'confirmed',
    ],
    [
      'is too short for the nearest other city',
      at({ lat: 52.12, lon: 11.63 }),
      0.05,
      'contradicted',
    ],
    ['does not prove that the node is near', at(BERLIN), 1.4, 'entered'],
    ['has no coordinates to compare with', at(), 0.1, 'entered'],
  ])('%s', (_, place, ms, check) => {
    const roundTrips = [{ ms, ...BERLIN }];
    expect(checkOf(comparePlace(place, { ...none, roundTrips }))).toBe(check);
  });

  it('reports distance and bound', () => {
    const [evidence] = comparePlace(at(SYDNEY), { ...none, roundTrips: [{ ms: 2, ...BERLIN }] });
    expect(evidence?.detail).toBe(
      '2 ms: at most 300 km from the validator; the entered place is 16095 km away',
    );
  });
});

it('weighs a contradiction more than any confirmation', () => {
  const roundTrips = [
    { ms: 1, ...BERLIN },
    { ms: 20, ...SYDNEY },
  ];
  const facts = { address: listed(), roundTrips };
  expect(checkOf(comparePlace(at(BERLIN), facts))).toBe('contradicted');
});

it('returns `entered` without evidence', () => {
  expect(checkOf(comparePlace(at(), none))).toBe('entered');
});
