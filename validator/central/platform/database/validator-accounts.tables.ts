/** The accounts of validators (validators/validator-account.service.ts). */

/** Each hotkey has one account at most, each account one hotkey. */
export type ValidatorAccountsTable = { hotkey: string; account_id: string; proven_at: number };

export type ValidatorAccountTables = { validator_accounts: ValidatorAccountsTable };
