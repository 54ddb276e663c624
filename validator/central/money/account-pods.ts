import type { Db } from '../platform/database/tables.ts';

/** The pods of an account, as far as incoming money affects them. The market implements this port (market/cut-off). */
export type AccountPods = {
  /** Locks accounts together with all their pods, pods first. Required before money is added to an account. */
  lock(tx: Db, accountIds: readonly string[]): Promise<void>;
  /**
   * Restarts pods that were stopped because the money ran out, oldest first, as far as the money suffices. Call it in
   * the transaction that adds the money.
   */
  restart(tx: Db, accountId: string): Promise<void>;
  /** Returns true if a pod of the account is stopped because the money ran out. */
  awaitMoney(tx: Db, accountId: string): Promise<boolean>;
};
