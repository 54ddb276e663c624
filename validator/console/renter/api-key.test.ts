import { expect, it } from 'vitest';
import type { ApiKey } from '../api/api.gen.ts';
import { scopesFrom, stateOf } from './api-key.ts';

const NOW_MS = 1_800_000_000_000;
const key = (change: Partial<ApiKey>): ApiKey => ({
  id: 'k',
  user_id: 'u',
  name: 'ci',
  masked_key: 'lk_…',
  key: null,
  is_active: true,
  created_at: '2026-01-01T00:00:00',
  updated_at: '2026-01-01T00:00:00',
  expires_at: null,
  last_used: null,
  scopes: null,
  workspace_id: null,
  created_by_user_id: 'u',
  daily_budget_usd: null,
  max_budget_usd: null,
  spent_today_usd: 3,
  spent_total_usd: 7,
  pod_visibility: 'account',
  pods_count: 0,
  ...change,
});

it.each<[Partial<ApiKey>, string]>([
  [{}, 'active'],
  [{ is_active: false }, 'inactive'],
  [{ is_active: false, expires_at: '2026-01-02T00:00:00' }, 'expired'],
  [{ expires_at: '2027-12-02T00:00:00' }, 'active'],
  [{ daily_budget_usd: 3.5, max_budget_usd: 8 }, 'active'],
  [{ daily_budget_usd: 3 }, 'budget_spent'],
  [{ max_budget_usd: 0 }, 'budget_spent'],
])('a key with %j is %s', (change, state) => expect(stateOf(key(change), NOW_MS)).toBe(state));

it('returns the chosen scopes', () => {
  expect(scopesFrom({ read: true, rent: false, manage: true })).toEqual(['read', 'manage']);
});
