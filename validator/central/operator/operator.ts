/** Composes the routes of operators. */
import type { HttpServer } from '#shared/http/server.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { AccountPorts } from '../accounts/account/account-ports.ts';
import type { UnknownPods } from '../market/pods/unknown-pods.ts';
import type { LedgerProofs } from '../money/ledger/ledger-proof.service.ts';
import type { OperatorRefunds } from '../money/metering/operator-refund.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import { createProviderBans } from '../providers/provider-ban.service.ts';
import { createAccountsForOperators } from './account.service.ts';
import { registerClock } from './clock.routes.ts';
import { registerFleet } from './fleet.routes.ts';
import { createFleet } from './fleet.service.ts';
import {
  registerAccounts,
  registerAudit,
  registerBans,
  registerRefunds,
} from './operator.routes.ts';
import { registerLedgerProof, registerQueues } from './queue.routes.ts';
import { createQueues } from './queue.service.ts';
import { registerRelay } from './relay.routes.ts';
import { registerUnknownPods } from './unknown-pods.routes.ts';

export type OperatorParts = {
  idempotency: Idempotency;
  refunds: OperatorRefunds;
  proofs: LedgerProofs;
  guard: GuardedClock;
  unknownPods: UnknownPods;
  /** Functions that return further data of an account. */
  views: Pick<AccountPorts, 'balanceOf' | 'earnedByReferrals' | 'validators'>;
};

/** Registers the routes below /api/operator. */
export function registerOperator(
  api: HttpServer,
  { ports }: Pick<CentralDeps, 'ports'>,
  { idempotency, refunds, proofs, views, guard, unknownPods }: OperatorParts,
): void {
  const { db, clock, random } = ports;
  registerAccounts(api, createAccountsForOperators({ db, clock }, views));
  registerRefunds(api, { refunds, idempotency, clock });
  registerBans(api, { db, clock, random, bans: createProviderBans({ clock }) });
  registerAudit(api, { db });
  registerFleet(api, createFleet({ db, clock }));
  registerQueues(api, createQueues({ db, clock }));
  registerLedgerProof(api, proofs);
  registerClock(api, { db, clock, guard });
  registerUnknownPods(api, unknownPods);
  registerRelay(api, ports.agents);
}
