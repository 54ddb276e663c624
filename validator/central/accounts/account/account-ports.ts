/**
 * Functions of the money and market modules that the accounts module calls. app.ts passes them in, because money and
 * market import accounts.
 */
import type { AccountProof } from '#shared/signing/account-proof.ts';
import type { TemplateResponse } from '../../market/templates/template.schemas.ts';
import type { Db } from '../../platform/database/tables.ts';

/**
 * Amounts in micro-dollars; posted - held is available. `unposted` is the use that `posted` already excludes and the
 * journal does not. `runsOutAtMs` is null if pods never stop for lack of money.
 */
export type AccountBalance = {
  posted: number;
  unposted: number;
  held: number;
  burnPerHour: number;
  runsOutAtMs: number | null;
};

export type AccountPorts = {
  /** Rejects with `account_balance_invalid` if the stored amounts are inconsistent. */
  balanceOf(db: Db, accountId: string): Promise<AccountBalance>;
  /** Returns the micro-dollars of referral earnings that have not been paid out to the account. */
  earnedByReferrals(db: Db, accountId: string): Promise<number>;
  /** Returns the account with this referral code. Throws `bad_request` if there is none. */
  referrerOf(db: Db, code: string): Promise<string>;
  addReferral(tx: Db, accountId: string, referrerId: string, nowMs: number): Promise<void>;
  /** Grants the credit once per account and once per address. Returns the micro-dollars granted. */
  grantSignupCredit(
    tx: Db,
    credit: { accountId: string; addressHash: string; amountUusd: number; nowMs: number },
  ): Promise<number>;
  /** Returns the account's pods that are not deleted. */
  livePodsOf(tx: Db, accountId: string): Promise<readonly { id: string; pod_name: string }[]>;
  /** Returns a template that the account may use; null if there is none with this id. */
  templateFor(db: Db, accountId: string, templateId: string): Promise<TemplateResponse | null>;
  validators: {
    /** Returns the hotkey of the validator linked to the account; null if there is none. */
    hotkeyOf(db: Db, accountId: string): Promise<string | null>;
    /** Links the account to the hotkey that signed the proof; null unlinks it. Throws `forbidden` for a bad proof. */
    link(tx: Db, accountId: string, proof: AccountProof | null): Promise<void>;
  };
};
