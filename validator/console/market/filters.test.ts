import { describe, expect, it } from 'vitest';
import {
  comparedIn,
  fieldsOf,
  MARKET_DEFAULTS,
  machineRequestOf,
  NO_FILTERS,
  queryOfMarket,
  requestedIn,
  toggleCompared,
  urlFiltersOf,
} from './filters.ts';
import { NO_SPEC, specOf, specPath } from './spec.ts';

describe('filters', () => {
  it('sends present filters with the types of the API, and leaves out malformed numbers', () => {
    const state = { ...NO_FILTERS, price_lte: '2.5', min_cpus: 'x', country: ' DE ' };
    expect(requestedIn(state)).toEqual({ price_lte: 2.5, country: 'DE' });
  });

  it('returns to the same address after the fields', () => {
    const state = { ...NO_FILTERS, min_vram_gb: '80', gpu_type: 'H100', bookmarked: true };
    expect(urlFiltersOf(fieldsOf(state))).toEqual(state);
  });

  it('requests an explained page; a malformed order or page becomes the default', () => {
    expect(queryOfMarket({ ...MARKET_DEFAULTS, sort: 'name', page: -2 })).toEqual({
      view: 'summary',
      explain: true,
      sort: 'price',
      page: 1,
      size: 25,
    });
  });

  it('becomes a machine request', () => {
    const state = { ...NO_FILTERS, gpu_type: 'H200', gpu_count_gte: '8', price_per_hour_lte: '20' };
    expect(machineRequestOf(state)).toEqual({
      gpu_class: 'H200',
      gpu_count: 8,
      hourly_budget: 20,
      country: '',
      min_vram_gb: null,
    });
  });

  it('becomes a rental by specification', () => {
    const filters = { ...NO_FILTERS, gpu_type: 'H100', gpu_count_gte: '2', price_lte: '3' };
    expect(specPath(filters)).toBe('/rent?gpu_count=2&max_price_per_gpu_hour=3&gpu_type=H100');
    expect(specOf({ ...NO_SPEC, gpu_type: 'H100', min_cpus: '8', min_ram_gb: 'x' })).toEqual({
      min_cpus: 8,
      gpu_type: 'H100',
    });
  });
});

describe('comparison', () => {
  it('adds and removes nodes, at most four', () => {
    const four = toggleCompared({ compare: 'a,b,c' }, 'd');
    expect(comparedIn({ compare: four })).toEqual(['a', 'b', 'c', 'd']);
    expect(toggleCompared({ compare: four }, 'e')).toBe(four);
    expect(toggleCompared({ compare: four }, 'b')).toBe('a,c,d');
  });

  it('ignores repeated ids of an address', () => {
    expect(comparedIn({ compare: 'a,a,,b,c,d,e' })).toEqual(['a', 'b', 'c', 'd']);
  });
});
