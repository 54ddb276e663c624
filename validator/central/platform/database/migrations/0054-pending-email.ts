/** The requested new address of an account, which counts once it is confirmed. */
export const pendingEmail = (): string[] => ['alter table accounts add column pending_email text'];
