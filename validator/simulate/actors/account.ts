/** Accounts that rent: their sign-up, and the credit that they pay. */
import { z } from 'zod';
import type { Random } from '#shared/runtime/random.ts';
import type { World } from '../world/world.ts';
import { expectAnswer, SignedUp } from './answers.ts';

export type Renter = {
  name: string;
  accountId: string;
  headers: Record<string, string>;
  random: Random;
};

/** Credit below which an account pays automatically. */
const TOP_UP_BELOW_USD = 20;
const PASSWORD = 'correct horse battery';

/** Creates the account with this name. Its payments are those of the scenario's renters. */
export async function signUpRenter(world: World, name: string): Promise<Renter> {
  const answer = await world.call({
    method: 'POST',
    path: '/api/users',
    body: { email: `${name}@example.com`, password: PASSWORD },
  });
  const { api_key: key, user } = expectAnswer(SignedUp, answer, 'sign-up');
  world.journal.record({ kind: 'sign-up', actor: name, account: user.id });
  const headers = { 'x-api-key': key };
  const { top_up_usd: amountUsd } = world.scenario.demand;
  if (amountUsd > 0) {
    const set = await world.call({
      method: 'PUT',
      path: '/api/users/me/auto-top-up',
      headers,
      body: {
        enabled: true,
        threshold_usd: TOP_UP_BELOW_USD,
        amount_usd: amountUsd,
        payment_method_id: 'model_card',
      },
    });
    expectAnswer(z.object({}), set, 'automatic top-up');
  }
  return { name, accountId: user.id, headers, random: world.randomOf(name) };
}
