/** Who pays out, as the central API's process and the command that requests payouts both read it. */
import { z } from 'zod';
import { type Environment, parseConfig } from '#shared/runtime/config.ts';

const PAYOUTS = ['none', 'simulated'] as const;

export const PayoutVariable = z.object({ CENTRAL_PAYOUTS: z.enum(PAYOUTS).default('none') });

/** Whether an environment names somebody, whatever else it holds. */
export function paysOut(environment: Environment): boolean {
  const spec = { schema: PayoutVariable, prefix: 'CENTRAL_' };
  return parseConfig(spec, environment).CENTRAL_PAYOUTS !== 'none';
}
