/** Checks a rental request against the account, the node and the balance before anything is written. */
import { microOrNull } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { defaultTerminationHours } from '../../accounts/account/account.service.ts';
import { accountOf, lockAccount } from '../../accounts/auth/account-access.ts';
import { secretNamesOf } from '../../accounts/secrets/secret.service.ts';
import { listForAccount } from '../../accounts/ssh-keys/ssh-key.service.ts';
import { requireRentalFunds } from '../../money/balance/balance.service.ts';
import { requireKeyBudget } from '../../money/metering/key-budget.service.ts';
import { settleFirst } from '../../money/metering/settlement.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { Actor, UserIdentity } from '../../platform/identity.ts';
import {
  type ExecutorEntry,
  requireExecutor,
  UNKNOWN_PODS,
} from '../executors/executor.service.ts';
import { gpuTotalOf, inventoryOf } from '../executors/executor-response.ts';
import { isLeaving } from '../executors/notice-period.ts';
import { hasLaunchOn } from '../pods/pod.service.ts';
import { removalAfter } from '../pods/pod-removal.ts';
import { requireSpendLimit } from '../pods/pod-stop.ts';
import { templateForRent } from '../templates/template-use.service.ts';
import { chooseGpuCount } from './gpu-choice.ts';
import type { RentExecutorRequest } from './rental.schemas.ts';
import {
  chosenKeys,
  dockerfileTemplate,
  refuseUnavailable,
  requireOneImage,
  restoreRequestOf,
} from './rental-request.ts';

/** A request that passed every check. Node and account are locked until the end of the transaction. */
export type CheckedRental = Awaited<ReturnType<typeof checkRental>>;

/**
 * Throws the first refusal, in this order: the body, the account, the node, its free GPUs, the spend limit, the
 * balance, the budgets of the API key, and then the template, the keys and the termination time.
 */
export async function checkRental(
  tx: Db,
  { clock, random }: { clock: Clock; random: Random },
  {
    executorId,
    body,
    identity,
    actor,
  }: { executorId: string; body: RentExecutorRequest; identity: UserIdentity; actor: Actor },
) {
  refuseUnavailable(body);
  requireOneImage(body);
  const restore = restoreRequestOf(body);
  const secretNames = secretNamesOf(body.secret_names);
  await requireVerified(tx, identity);
  const nowMs = clock.now();
  await lockRow(tx, 'executors', executorId);
  const executor = await requireRentable(tx, executorId, nowMs);
  const gpus = chooseGpuCount(body.gpu_count ?? null, {
    total: gpuTotalOf(executor),
    free: executor.slots_free,
    minimum: executor.min_gpu_count,
    canSplit: executor.can_split === 1,
    isLaunching: executor.slots_free === 0 && (await hasLaunchOn(tx, executorId)),
  });
  // Locks the account so that concurrent rentals cannot spend the same balance.
  const account = await lockAccount(tx, identity);
  const settled = await settleFirst(tx, account.id, nowMs);
  const { price_uusd_per_gpu_hour: priceUusdPerGpuHour } = executor;
  requireSpendLimit(microOrNull(body.max_spend_usd), { priceUusdPerGpuHour, gpus });
  const hold = requireRentalFunds(settled, priceUusdPerGpuHour, gpus);
  await requireKeyBudget(tx, actor.apiKeyId, hold, nowMs);
  const dockerfile = body.dockerfile_content ?? undefined;
  const template =
    dockerfile === undefined
      ? await templateForRent(tx, account.id, body.template_id ?? null, account.default_template_id)
      : dockerfileTemplate(dockerfile, { id: random.uuid(), accountId: account.id, nowMs });
  const keys = chosenKeys(body.user_public_key, await listForAccount(tx, account.id));
  const hours = body.termination_hours ?? defaultTerminationHours(account, identity.source);
  const removalAt = hours === null ? null : removalAfter(hours, nowMs);
  const inventory = requireInventory(executor);
  return {
    nowMs,
    executor,
    inventory,
    gpus,
    account,
    settled,
    hold,
    dockerfile,
    template,
    keys,
    hours,
    removalAt,
    restore,
    secretNames,
  };
}

/** Throws if the provider does not offer the node, or the node is not verified. */
async function requireRentable(tx: Db, id: string, nowMs: number): Promise<ExecutorEntry> {
  const executor = await requireExecutor(tx, id);
  if (isLeaving(executor, nowMs)) {
    throw new ApiError('node_unavailable', 'The provider is removing this node');
  }
  if (executor.banned_at !== null) {
    throw new ApiError('provider_banned', 'The provider of this node is banned');
  }
  if (executor.paused === 1 || executor.opted_in === 0) {
    throw new ApiError(
      'node_paused_by_provider',
      'The provider of this node accepts no new rentals',
    );
  }
  if (executor.unknown_pods > 0) throw new ApiError('node_unavailable', UNKNOWN_PODS);
  if (executor.state !== 'verified') {
    throw new ApiError('node_not_verified', 'The validator has not passed this node');
  }
  return executor;
}

function requireInventory(executor: ExecutorEntry) {
  const inventory = inventoryOf(executor);
  if (inventory !== null) return inventory;
  throw new ApiError('node_unavailable', 'The hardware of this node was not measured yet');
}

/** Throws `email_not_verified`. */
export async function requireVerified(tx: Db, identity: UserIdentity): Promise<void> {
  if ((await accountOf(tx, identity)).email_verified_at !== null) return;
  throw new ApiError('email_not_verified', 'Confirm your e-mail address before renting');
}
