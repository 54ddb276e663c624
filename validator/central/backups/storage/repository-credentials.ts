/** Credentials of repositories, which are derived from the central API's secret and not stored. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import { isRepositoryId, type RepositoryFile, ResticRefusal } from './restic-protocol.ts';

/** Rights of a credential. `append`: add and read files, and remove locks. `full`: all operations. */
export const RIGHTS = ['append', 'full'] as const;
export type Rights = (typeof RIGHTS)[number];

/** Repository, account and rights that a credential proves. */
export type Grant = { repositoryId: string; accountId: string; rights: Rights };

/** Without `full` rights, throws 403 except for locks: a compromised node must not delete its backups. */
export function assertMayRemove({ rights }: Grant, file: RepositoryFile): void {
  const isLock = file !== 'config' && file.type === 'locks';
  if (rights !== 'full' && !isLock) {
    throw new ResticRefusal(403, 'This credential may only append');
  }
}

export type RepositoryCredentials = ReturnType<typeof createRepositoryCredentials>;

/** Maximum length of an `Authorization` header in characters; valid headers are shorter. */
const MAX_HEADER_CHARS = 512;

export function createRepositoryCredentials({ secret }: { secret: Uint8Array }) {
  const key = deriveKey(secret, 'backup-repository');

  function passwordOf({ repositoryId, accountId, rights }: Grant): string {
    const text = [repositoryId, accountId, rights].join('\n');
    return createHmac('sha256', key).update(text).digest('base64url');
  }

  return {
    /**
     * Returns credentials for HTTP basic authentication. The user name contains rights and account, so no table of
     * credentials is needed.
     */
    of(grant: Grant): { username: string; password: string } {
      return { username: `${grant.rights}.${grant.accountId}`, password: passwordOf(grant) };
    },

    /** Verifies an `Authorization` header. Returns null if the credential was not derived for this repository. */
    grantOf(repositoryId: string, header: string | undefined): Grant | null {
      const credentials = basicCredentials(header);
      if (credentials === null) return null;
      const [name = '', accountId = '', ...rest] = credentials.username.split('.');
      const rights = RIGHTS.find((known) => known === name);
      if (rights === undefined || rest.length > 0 || !isRepositoryId(accountId)) return null;
      const grant = { repositoryId, accountId, rights };
      const [expected, sent] = [Buffer.from(passwordOf(grant)), Buffer.from(credentials.password)];
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
