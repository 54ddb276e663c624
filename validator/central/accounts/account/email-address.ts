/** E-mail addresses of accounts. */
import { ApiError } from '#shared/runtime/errors.ts';

const EMAIL_TAKEN = 'User already exists with the same email';

/** Normalizes an address for comparison. */
export function normalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Error for an address that already has an account. */
export function emailTaken(): ApiError {
  return new ApiError('bad_request', EMAIL_TAKEN, { hint: 'Log in or use another address.' });
}
