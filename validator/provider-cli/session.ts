/** The provider's session with a central API, in a file of mode 0600. */
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { ProviderError } from './problem.ts';

const Session = z.object({
  /** Base URL of the portal; ends with `/portal`. */
  portal_url: z.url(),
  hotkey: z.string(),
  token: z.string().max(10_000),
});
export type Session = z.output<typeof Session>;

const fileIn = (home: string) => join(home, 'session.json');

export function writeSession(home: string, session: Session, random: Random): string {
  replacePrivateFile(fileIn(home), `${JSON.stringify(session)}\n`, random);
  return fileIn(home);
}

/** Throws ConfigError if other users may read the file. */
export function requireSession(home: string): Session {
  const session = readSession(home);
  if (session !== null) return session;
  const hint = 'Log in: npm run provider -- login --url https://<central API>';
  throw new ProviderError('not_logged_in', 'You are not logged in', hint);
}

function readSession(home: string): Session | null {
  const bytes = readPrivateFile(fileIn(home));
  if (bytes === null) return null;
  try {
    return Session.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    // `login` replaces an incomplete file.
    return null;
  }
}

/** Returns the portal of a central API. Accepts the address with or without `/api` or `/portal`. */
export function portalUrlOf(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '') {
    const hint = 'Give the address of the central API, such as --url https://api.example.org';
    throw new ProviderError('usage', `--url ${text}: not an address of a central API`, hint);
  }
  return `${url.origin}${url.pathname.replace(/\/+(?:api\/*|portal\/*)?$/, '')}/portal`;
}
