/** Demo renters: signed up through the public API and reused after a restart. */
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { CallRefused, callJson } from '#shared/http/json-call.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { type Home, readOrCreateFile, writePrivateFile } from './home.ts';

export type DemoAccount = {
  email: string;
  password: string;
  apiKey: string;
  /** Single-use ticket that logs a browser in. */
  ticket: string;
};

const DEMO_EMAIL = 'demo@podwright.invalid';
const PROBE_EMAIL = 'renter@podwright.invalid';
const PASSWORD_BYTES = 18;
const SECRET_BYTES = 32;
const KEY_NAME = 'demo';

const Credentials = z.object({ email: z.string(), password: z.string() });
const LoggedIn = z.object({ token: z.string() });
const Key = z.object({ name: z.string(), is_active: z.boolean(), key: z.string().nullish() });

/**
 * Creates the demo account if it does not exist. The password is stored before the account is created, so a crash in
 * between loses nothing.
 */
export async function ensureDemoAccount(
  baseUrl: string,
  home: Home,
  random: Random,
): Promise<DemoAccount> {
  const { account, headers } = await openAccount(baseUrl, home.accountFile, {
    email: DEMO_EMAIL,
    random,
  });
  const apiKey = await ensureApiKey(baseUrl, headers);

  const publicKey = ensureSshKeyPair(home, random);
  await callJson(z.object({ id: z.string() }), {
    method: 'POST',
    url: `${baseUrl}/ssh-keys`,
    headers,
    body: { name: 'demo', public_key: publicKey },
  });
  const { ticket } = await callJson(z.object({ ticket: z.string() }), {
    method: 'POST',
    url: `${baseUrl}/auth/tickets`,
    headers,
  });
  return { ...account, apiKey, ticket };
}

/**
 * Creates the account of hidden rentals and the file with its key, if they do not exist. Returns the account's address.
 */
export async function ensureProbeAccount(
  baseUrl: string,
  home: Home,
  random: Random,
): Promise<string> {
  const options = { email: PROBE_EMAIL, random };
  const { account, headers } = await openAccount(baseUrl, home.probeAccountFile, options);
  if (!existsSync(home.probeAccountsFile)) {
    const accounts = [{ name: account.email, api_key: await ensureApiKey(baseUrl, headers) }];
    const content = { secret: randomToken(random, SECRET_BYTES), accounts };
    writePrivateFile(home.probeAccountsFile, JSON.stringify(content));
  }
  return account.email;
}

/** Logs in to an account whose login is stored in a file, or signs it up. */
async function openAccount(
  baseUrl: string,
  file: string,
  { email, random }: { email: string; random: Random },
) {
  const stored = readOrCreateFile(file, () =>
    JSON.stringify({ email, password: randomToken(random, PASSWORD_BYTES) }),
  );
  const account = Credentials.parse(JSON.parse(stored.toString('utf8')));
  const headers = { authorization: `Bearer ${await logInOrSignUp(baseUrl, account)}` };
  return { account, headers };
}

/** Returns the public key line. The public key file is written first, so that a private key file never exists alone. */
function ensureSshKeyPair(home: Home, random: Random): string {
  const pair = createSshKeyPair(random, 'podwright-demo');
  const paired = existsSync(home.sshPrivateKey);
  if (!paired) writePrivateFile(home.sshPublicKey, `${pair.publicKey}\n`);
  readOrCreateFile(home.sshPrivateKey, () => pair.privateKeyPem);
  return readFileSync(home.sshPublicKey, 'utf8').trim();
}

async function logInOrSignUp(
  baseUrl: string,
  account: z.output<typeof Credentials>,
): Promise<string> {
  const logIn = () =>
    callJson(LoggedIn, { method: 'POST', url: `${baseUrl}/users/login`, body: account });
  try {
    return (await logIn()).token;
  } catch (error) {
    if (!(error instanceof CallRefused && error.status === 401)) throw error;
  }
  await callJson(z.object({ msg: z.string() }), {
    method: 'POST',
    url: `${baseUrl}/users`,
    body: { name: 'Demo', ...account },
  });
  return (await logIn()).token;
}

async function ensureApiKey(baseUrl: string, headers: Record<string, string>): Promise<string> {
  const keys = await callJson(z.array(Key), { method: 'GET', url: `${baseUrl}/keys`, headers });
  const present = keys.find((key) => key.name === KEY_NAME && key.is_active && key.key);
  if (present?.key) return present.key;
  const made = await callJson(Key, {
    method: 'POST',
    url: `${baseUrl}/keys`,
    headers,
    body: { name: KEY_NAME },
  });
  if (!made.key) throw new Error('the answer does not contain the new API key');
  return made.key;
}
