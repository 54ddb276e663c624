/** Decisions about API keys. Pure; times are milliseconds since the epoch. */
import type { ApiKey } from '../api/api.gen.ts';
import { parseApiTime } from '../browser/clock.ts';
import type { Tone } from '../parts/tone.ts';

export type KeyState = 'active' | 'inactive' | 'expired' | 'budget_spent';

/** State of a key. The API rejects requests that cost money if a budget is spent. */
export function stateOf(key: ApiKey, nowMs: number): KeyState {
  const expiresMs = key.expires_at === null ? null : parseApiTime(key.expires_at);
  if (expiresMs !== null && expiresMs <= nowMs) return 'expired';
  if (!key.is_active) return 'inactive';
  const isSpent = budgetsOf(key).some(({ spent, limit }) => limit !== null && spent >= limit);
  return isSpent ? 'budget_spent' : 'active';
}

export const KEY_TONES: Record<KeyState, Tone> = {
  active: 'good',
  inactive: 'idle',
  expired: 'idle',
  budget_spent: 'warn',
};

/** Spending of a key with its limits in USD; null for no limit. */
export function budgetsOf(key: ApiKey) {
  return [
    { name: 'today', spent: key.spent_today_usd, limit: key.daily_budget_usd },
    { name: 'in total', spent: key.spent_total_usd, limit: key.max_budget_usd },
  ] as const;
}

export const SCOPES = ['read', 'rent', 'manage'] as const;
export type Scope = (typeof SCOPES)[number];

/** Returns the chosen scopes. */
export function scopesFrom(values: Record<Scope, boolean>): Scope[] {
  return SCOPES.filter((scope) => values[scope]);
}
