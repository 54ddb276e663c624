/** Refusals of requests by the budget of an API key: the error, and its record for GET /keys/{id}/refusals. */
import type { FastifyRequest } from 'fastify';
import { formatUsdCeil, formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ApiKeyRefusal, Database } from '../../platform/database/tables.ts';
import { routeNameOf } from '../auth/route-scopes.ts';
import { insertRefusal } from './api-key.store.ts';

/** Amounts in micro-dollars. */
export type BudgetExcess = {
  keyId: string;
  window: ApiKeyRefusal['budget_window'];
  /** Amount that the request needs. */
  amountUusd: number;
  budgetUusd: number;
  spentUusd: number;
  /** Amount that the running pods of the key need for their next 15 minutes. */
  reservedUusd: number;
};

/** Error 402 `API_KEY_BUDGET_EXCEEDED`. */
export class BudgetExceeded extends ApiError {
  readonly excess: BudgetExcess;

  constructor(excess: BudgetExcess) {
    const { window, amountUusd, budgetUusd, spentUusd, reservedUusd } = excess;
    const whose = window === 'day' ? 'daily budget' : 'budget';
    const left = Math.max(0, budgetUusd - spentUusd - reservedUusd);
    const reserved =
      reservedUusd === 0
        ? ''
        : ` in addition to the ${formatUsdCeil(reservedUusd)} that its pods need for their next 15 minutes`;
    super(
      'API_KEY_BUDGET_EXCEEDED',
      `The ${whose} of this API key does not cover this request. It needs ${formatUsdCeil(amountUusd)}; ` +
        `${formatUsdFloor(left)} of ${formatUsdFloor(budgetUusd)} is left${reserved}.`,
      { details: { api_key_id: excess.keyId, window } },
    );
    this.excess = excess;
  }
}

export type RecordRefusal = ReturnType<typeof createRefusalRecorder>;

/** Returns a function that stores a refusal by a budget, and ignores other errors. Call it after the rollback. */
export function createRefusalRecorder(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;
  return async (request: FastifyRequest, error: unknown): Promise<void> => {
    if (!(error instanceof BudgetExceeded)) return;
    const { keyId, window, amountUusd, budgetUusd, spentUusd } = error.excess;
    await insertRefusal(db, {
      id: random.uuid(),
      api_key_id: keyId,
      budget_window: window,
      route: routeNameOf(request),
      amount_uusd: amountUusd,
      budget_uusd: budgetUusd,
      spent_uusd: spentUusd,
      created_at: clock.now(),
    });
  };
}
