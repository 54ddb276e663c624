/** Credentials of repositories: made from the central API's secret whenever they are needed, kept nowhere. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import { isRepositoryId } from './restic-path.ts';

/** `append`: add, read, and remove locks; `full`: everything. */
export const RIGHTS = ['append', 'full'] as const;
export type Rights = (typeof RIGHTS)[number];

/** Whose repository with which rights: all that a credential proves. */
export type Grant = { repositoryId: string; accountId: string; rights: Rights };

export type RepositoryCredentials = ReturnType<typeof createRepositoryCredentials>;

/** Far longer than any header of ours. */
const MAX_HEADER_CHARS = 512;

export function createRepositoryCredentials({ secret }: { secret: Uint8Array }) {
  const key = deriveKey(secret, 'backup-repository');

  function passwordOf({ repositoryId, accountId, rights }: Grant): string {
    const text = [repositoryId, accountId, rights].join('\n');
    return createHmac('sha256', key).update(text).digest('base64url');
  }

  return {
    /** For HTTP basic authentication. The user's name tells rights and account, so that no table has to. */
    of(grant: Grant): { username: string; password: string } {
      return { username: `${grant.rights}.${grant.accountId}`, password: passwordOf(grant) };
    },

    /** What an `Authorization` header grants for the repository; null when it was not made by `of` for that one. */
    grantOf(repositoryId: string, header: string | undefined): Grant | null {
      const given = basicCredentials(header);
      if (given === null) return null;
      const [name = '', accountId = '', ...rest] = given.username.split('.');
      const rights = RIGHTS.find((known) => known === name);
      if (rights === undefined || rest.length > 0 || !isRepositoryId(accountId)) return null;
      const grant = { repositoryId, accountId, rights };
      const [expected, sent] = [Buffer.from(passwordOf(grant)), Buffer.from(given.password)];
      return expected.length === sent.length && timingSafeEqual(expected, sent) ? grant : null;
    },
  };
}

function basicCredentials(header = ''): { username: string; password: string } | null {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header.slice(0, MAX_HEADER_CHARS))?.[1];
  const text = Buffer.from(encoded ?? '', 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? null : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
