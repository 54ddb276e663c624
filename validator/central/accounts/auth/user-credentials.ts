/** Identifies the account of a request by API key, session token or both, and reads X-Source and client version. */
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { ApiError } from '#shared/runtime/errors.ts';
import type { ApiKey, Database } from '../../platform/database/tables.ts';
import {
  KEY_SCOPES,
  type KeyScope,
  type Source,
  type UserIdentity,
} from '../../platform/identity.ts';
import { API_KEY_PREFIX } from './api-key-secret.ts';
import type { Sessions } from './session.ts';

type Credential = UserIdentity['credential'];
type Credentials = { headers: IncomingHttpHeaders };
type Proven = { accountId: string; credential: Credential };

/** The columns of an API key that an identity needs. */
export type RecognisedKey = Pick<ApiKey, 'id' | 'account_id' | 'name' | 'scopes_json'>;

export type UserCredentials = ReturnType<typeof createUserCredentials>;

/**
 * Creates the check of account credentials. Every credential of a request must be valid, and all must belong to the
 * same account.
 */
export function createUserCredentials(deps: {
  db: Database;
  sessions: Sessions;
  /** Throws `unauthorized` or `api_key_inactive`. */
  apiKeys: { recognise(key: string): Promise<RecognisedKey> };
}) {
  const { db, sessions, apiKeys } = deps;

  async function proveKey(key: string): Promise<Proven> {
    const { account_id: accountId, id, name, scopes_json } = await apiKeys.recognise(key);
    const scopes = scopesIn(scopes_json);
    return { accountId, credential: { type: 'api_key', keyId: id, keyName: name, scopes } };
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

const Scopes = z.array(z.enum(KEY_SCOPES)).nullable();

/** Scopes stored with a key; null for all scopes. */
export function scopesIn(json: string | null): KeyScope[] | null {
  return Scopes.parse(json === null ? null : JSON.parse(json));
}

function apiKeyHeader(request: Credentials): string | null {
  const sent = request.headers['x-api-key'];
  return typeof sent === 'string' && sent !== '' ? sent : null;
}

/**
 * Returns the token after `Authorization: Bearer`, whether or not it is well formed; null for other schemes and an
 * empty token.
 */
export function bearerToken(request: Credentials): string | null {
  const [, rest = ''] = /^bearer\s(.*)$/i.exec(request.headers.authorization ?? '') ?? [];
  const token = rest.trim();
  return token === '' ? null : token;
}

/** Returns true if a header of the request contains an API key, valid or not. */
export function sendsKey(request: Credentials): boolean {
  return (
    apiKeyHeader(request) !== null || bearerToken(request)?.startsWith(API_KEY_PREFIX) === true
  );
}

const STATED_SOURCES = ['ui', 'cli', 'sdk', 'mcp'] as const satisfies readonly Source[];
/** The pattern recommended by semver.org, without capture groups. */
const SEMVER =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
const MAX_VERSION_CHARS = 64;

/** Returns X-Source. Ignores unknown values, and repeated headers, which Node joins with a comma. */
export function sourceOf(
  headers: IncomingHttpHeaders,
  credential: UserIdentity['credential']['type'],
): Source {
  const stated = String(headers['x-source'] ?? '').toLowerCase();
  const known = STATED_SOURCES.find((source) => source === stated);
  return known ?? (credential === 'api_key' ? 'programmatic' : 'ui');
}

/** Returns X-Lium-Client-Version if it is a semantic version, otherwise null. */
export function clientVersionOf(headers: IncomingHttpHeaders): string | null {
  const stated = headers['x-lium-client-version'];
  if (typeof stated !== 'string' || stated.length > MAX_VERSION_CHARS) return null;
  return SEMVER.test(stated) ? stated : null;
}
