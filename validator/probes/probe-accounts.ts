/** Reads the operator's file with the accounts that rent, and with the secret from which the rentals are drawn. */
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { readPrivateFile } from '#shared/runtime/files.ts';
import type { ValidatorConfig } from '../config.ts';

const MAX_ACCOUNTS = 100;
const MIN_SECRET_CHARS = 32;

const ProbeAccount = z.strictObject({
  /** Recorded with each rental, so that it is ended with the same account; the central API never receives it. */
  name: z.string().min(1).max(100),
  api_key: z
    .string()
    .max(500)
    .regex(/^[\x21-\x7e]+$/, 'not an API key: write the key that the central API returned'),
});
export type ProbeAccount = z.output<typeof ProbeAccount>;

const ProbeAccounts = z.strictObject({
  /** Any random text; a new one changes all plans. */
  secret: z.string().min(MIN_SECRET_CHARS).max(1_000),
  accounts: z.tuple([ProbeAccount], ProbeAccount),
});
export type ProbeAccounts = z.output<typeof ProbeAccounts>;

/** Accounts of the file that the configuration names; null if it names none. Throws ConfigError as `readProbeAccounts`. */
export function probeAccountsIn({
  VALIDATOR_PROBE_ACCOUNTS_FILE: path,
}: Pick<ValidatorConfig, 'VALIDATOR_PROBE_ACCOUNTS_FILE'>): ProbeAccounts | null {
  return path === undefined ? null : readProbeAccounts(path);
}

/** Throws ConfigError for a missing file, one that other users can read, and wrong content. Never names a secret. */
export function readProbeAccounts(path: string): ProbeAccounts {
  const bytes = readPrivateFile(path);
  if (bytes === null) throw new ConfigError(`there is no file ${path}`);
  const parsed = ProbeAccounts.safeParse(contentOf(bytes, path));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path: field, message }) => `${field.join('.') || 'file'}: ${message}`,
    );
    throw new ConfigError(`${path} does not list probe accounts: ${problems.join('; ')}`);
  }
  const { accounts } = parsed.data;
  const names = new Set(accounts.map(({ name }) => name));
  if (names.size < accounts.length) throw new ConfigError(`${path}: two accounts have one name`);
  if (accounts.length > MAX_ACCOUNTS) {
    throw new ConfigError(`${path}: more than ${MAX_ACCOUNTS} accounts`);
  }
  return parsed.data;
}

function contentOf(bytes: Uint8Array, path: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new ConfigError(`${path} is not JSON`);
  }
}
