/** Who an account's request comes from: API key and session token side by side (contract 2.1). */
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '#shared/runtime/errors.ts';
import type { ApiKey, Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { API_KEY_PREFIX } from './api-key-secret.ts';
import { clientVersionOf, sourceOf } from './request-source.ts';
import type { Sessions } from './session.ts';

type Credential = UserIdentity['credential'];
/** Whatever carries them. */
type Credentials = { headers: IncomingHttpHeaders };
type Proven = { accountId: string; credential: Credential };

export type UserCredentials = ReturnType<typeof createUserCredentials>;

/** Every credential sent must be valid and all must be of one account. */
export function createUserCredentials(deps: {
  db: Database;
  sessions: Sessions;
  /** Throws `unauthorized` or `api_key_inactive`. */
  apiKeys: { recognise(key: string): Promise<Pick<ApiKey, 'id' | 'account_id' | 'name'>> };
}) {
  const { db, sessions, apiKeys } = deps;

  async function proveKey(key: string): Promise<Proven> {
    const { account_id, id, name } = await apiKeys.recognise(key);
    return { accountId: account_id, credential: { type: 'api_key', keyId: id, keyName: name } };
  }

  async function proveBearer(token: string): Promise<Proven> {
    if (token.startsWith(API_KEY_PREFIX)) return proveKey(token);
    const check = await sessions.check(db, 'user', token);
    if (check.state === 'valid') {
      const { subjectId: accountId, sessionId } = check;
      return { accountId, credential: { type: 'session', sessionId } };
    }
    throw new ApiError('unauthorized', 'The session token is invalid or expired');
  }

  return {
    /** Throws `unauthorized` or `api_key_inactive`. */
    async identify(request: Credentials): Promise<UserIdentity> {
      const { headers } = request;
      const key = apiKeyHeader(request);
      const token = bearerToken(request);
      const byKey = key === null ? null : await proveKey(key);
      const byBearer = token === null ? null : await proveBearer(token);
      const proven = byKey ?? byBearer;
      if (proven === null) throw new ApiError('unauthorized', 'API key header is missing');
      if (byKey !== null && byBearer !== null && byKey.accountId !== byBearer.accountId) {
        throw new ApiError('unauthorized', 'The two credentials belong to different accounts');
      }
      return {
        kind: 'user',
        ...proven,
        source: sourceOf(headers, proven.credential.type),
        clientVersion: clientVersionOf(headers),
      };
    },
  };
}

function apiKeyHeader(request: Credentials): string | null {
  const given = request.headers['x-api-key'];
  return typeof given === 'string' && given !== '' ? given : null;
}

/** What follows `Authorization: Bearer`, well formed or not; other schemes and nothing count as no credential. */
export function bearerToken(request: Credentials): string | null {
  const [, rest = ''] = /^bearer\s(.*)$/i.exec(request.headers.authorization ?? '') ?? [];
  const token = rest.trim();
  return token === '' ? null : token;
}
