/** CENTRAL_PAYOUTS, which both the central API and the `payout` command read. */
import { z } from 'zod';
import { type Environment, parseConfig } from '#shared/runtime/config.ts';

const PAYOUTS = ['none', 'simulated'] as const;

export const PayoutVariable = z.object({ CENTRAL_PAYOUTS: z.enum(PAYOUTS).default('none') });

/** Returns true if the environment configures a payout processor. Ignores all other variables. */
export function paysOut(environment: Environment): boolean {
  const spec = { schema: PayoutVariable, prefix: 'CENTRAL_' };
  return parseConfig(spec, environment).CENTRAL_PAYOUTS !== 'none';
}
