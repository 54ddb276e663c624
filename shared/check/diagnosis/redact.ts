/** Takes secrets out of texts that leave the machine: known ones by what they are, others by where they stand. Pure. */
import { withoutPasswords } from '../../runtime/secrets.ts';

const HIDDEN = '[hidden]';
/** A shorter one would take words out of every text. */
const MIN_SECRET_CHARS = 6;
/** Each is looked for in every text. */
export const MAX_KNOWN_SECRETS = 5_000;

const PRIVATE_KEY =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g;
const HEADER =
  /\b(authorization|proxy-authorization|cookie|set-cookie|x-api-key|x-registry-auth|x-podwright-signature)(\\{0,3}["']?\s{0,8}[:=]\s{0,8}\\{0,3}["']?)[^\r\n"'\\]+/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const NAMED =
  /((?:passw(?:or)?d|passphrase|\bpass\b|pwd|secret|token|ticket(?!s)|session(?!s)|api[_-]?key|access[_-]?key|private[_-]?key|seed|credential)[\w.-]{0,64}\\{0,3}["']?\s{0,8}[:=]\s{0,8})("(?:[^"\\]|\\.)*"|\\+"[^"]*"|'[^']*'|[^\s,;&}\]"']+)/gi;
/** Tokens that tell by their beginning what they are: our own, Stripe's, GitHub's and Amazon's. */
const KNOWN_BEGINNING =
  /\b(?:lpk_|whsec_|sk_(?:live_|test_)?|rk_(?:live|test)_|gh[pousr]_|github_pat_|AKIA|ASIA)[\w-]{8,}/g;
const WEB_TOKEN = /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g;

export type Redact = (text: string) => string;

/** `known`: secrets themselves, as the store and files have them. Throws RangeError when they are too many to look for. */
export function createRedact(known: Iterable<string>): Redact {
  const secrets = [...new Set([...known].flatMap(formsOf))]
    .filter((form) => form.length >= MIN_SECRET_CHARS)
    // A secret within another one must not leave the rest of it behind.
    .toSorted((left, right) => right.length - left.length);
  if (secrets.length > MAX_KNOWN_SECRETS) {
    throw new RangeError(`more than ${MAX_KNOWN_SECRETS} secrets to look for`);
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
        .replaceAll(KNOWN_BEGINNING, HIDDEN)
        .replaceAll(WEB_TOKEN, HIDDEN),
    );
  };
}

/** As it stands in plain text, in JSON, in addresses and forms, in base64; of several lines each. */
function formsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim());
  return [secret, ...lines].flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    ...percentEncoded(text),
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
  ]);
}

/** By either rule of the web. */
function percentEncoded(text: string): string[] {
  // Half a surrogate pair has no such form.
  const strict = encodeURIComponent(text.toWellFormed());
  return [strict, new URLSearchParams([['', text]]).toString().slice(1)];
}

/** All texts in a value, at any depth; for what is secret as a whole. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
