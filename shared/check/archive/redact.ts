/**
 * Removes secrets from texts that leave the host. Known secrets are found by value, unknown secrets by the name of
 * their field or header. Pure.
 */
import { withoutPasswords } from '../../runtime/secrets.ts';

const HIDDEN = '[hidden]';
/** Minimum length of a redacted secret; shorter ones would match ordinary words. */
const MIN_SECRET_CHARS = 6;
/** Limit, because each text is searched for every secret. */
export const MAX_KNOWN_SECRETS = 5_000;

const PRIVATE_KEY =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g;
const HEADER =
  /\b(authorization|proxy-authorization|cookie|set-cookie|x-api-key|x-registry-auth|x-podwright-signature)(\\{0,3}["']?\s{0,8}[:=]\s{0,8}\\{0,3}["']?)[^\r\n"'\\]+/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const NAMED =
  /((?:passw(?:or)?d|passphrase|\bpass\b|pwd|secret|token|ticket(?!s)|session(?!s)|api[_-]?key|access[_-]?key|private[_-]?key|seed|credential)[\w.-]{0,64}\\{0,3}["']?\s{0,8}[:=]\s{0,8})("(?:[^"\\]|\\.)*"|\\+"[^"]*"|'[^']*'|[^\s,;&}\]"']+)/gi;
/** Tokens with a known prefix: our own, Stripe's, GitHub's and Amazon's. */
const KNOWN_PREFIX =
  /\b(?:lpk_|whsec_|sk_(?:live_|test_)?|rk_(?:live|test)_|gh[pousr]_|github_pat_|AKIA|ASIA)[\w-]{8,}/g;
const WEB_TOKEN = /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g;

export type Redact = (text: string) => string;

/** `known`: values of secrets. Throws RangeError if there are more than MAX_KNOWN_SECRETS. */
export function createRedact(known: Iterable<string>): Redact {
  const secrets = [...new Set([...known].flatMap(formsOf))]
    .filter((form) => form.length >= MIN_SECRET_CHARS)
    // Longest first: if one secret contains another, replacing the shorter secret first would leave parts of the longer
    // secret.
    .toSorted((left, right) => right.length - left.length);
  if (secrets.length > MAX_KNOWN_SECRETS) {
    throw new RangeError(`more than ${MAX_KNOWN_SECRETS} secrets to hide`);
  }
  return (text) => {
    let clean = text;
    for (const each of secrets) clean = clean.replaceAll(each, HIDDEN);
    return withoutPasswords(
      clean
        .replaceAll(PRIVATE_KEY, HIDDEN)
        .replaceAll(HEADER, `$1$2${HIDDEN}`)
        .replaceAll(SCHEME, `$1 ${HIDDEN}`)
        .replaceAll(NAMED, `$1${HIDDEN}`)
        .replaceAll(KNOWN_PREFIX, HIDDEN)
        .replaceAll(WEB_TOKEN, HIDDEN),
    );
  };
}

/** Returns the secret and each of its lines as plain text, JSON, percent-encoded and base64. */
function formsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim());
  return [secret, ...lines].flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    ...percentEncoded(text),
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
  ]);
}

/** Returns the text encoded as in a URI component and as in a form. */
function percentEncoded(text: string): string[] {
  // A lone surrogate cannot be encoded.
  const strict = encodeURIComponent(text.toWellFormed());
  return [strict, new URLSearchParams([['', text]]).toString().slice(1)];
}

/** Returns the texts in which a binary secret may appear. */
export function secretForms(secret: Uint8Array): string[] {
  const bytes = Buffer.from(secret);
  return [bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')];
}

/** Returns all strings in a value, at any depth; for values that are secret as a whole. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
