/** GET and PUT /users/me/low-balance-threshold. */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import {
  EffectiveLowBalanceConfigDto,
  LowBalanceThreshold,
  LowBalanceThresholdUpdateDto,
} from './low-balance.schemas.ts';
import type { LowBalance } from './low-balance.service.ts';

const tags = ['Users'];
const config = { auth: 'user' } as const;

export function registerLowBalanceRoutes(api: HttpServer, lowBalance: LowBalance): void {
  api.get(
    '/users/me/low-balance-threshold',
    {
      config,
      schema: {
        tags,
        summary: 'Get the low-balance thresholds',
        description:
          'Returns the thresholds that apply, the defaults, and which of them the account has set.',
        response: { 200: EffectiveLowBalanceConfigDto },
      },
    },
    (request) => lowBalance.effective(userOf(request)),
  );
  api.put(
    '/users/me/low-balance-threshold',
    {
      config,
      schema: {
        tags,
        summary: 'Set the low-balance thresholds',
        description: 'Stores the given thresholds.',
        retry: 'Safe: a repeat stores the same values again.',
        body: LowBalanceThresholdUpdateDto,
        response: { 200: LowBalanceThreshold },
      },
    },
    (request) => lowBalance.change(userOf(request), request.body),
  );
}
