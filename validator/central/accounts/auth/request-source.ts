/** Where a request comes from: X-Source and X-Lium-Client-Version (specification, Authentication 9). Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Source, UserIdentity } from '../../platform/identity.ts';

const STATED_SOURCES = ['ui', 'cli', 'sdk', 'mcp'] as const satisfies readonly Source[];
/** The pattern that semver.org recommends, without capture groups. */
const SEMVER =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
const MAX_VERSION_CHARS = 64;

/** A repeated header arrives joined by a comma and so matches nothing: it is ignored, as any other value. */
export function sourceOf(
  headers: IncomingHttpHeaders,
  credential: UserIdentity['credential']['type'],
): Source {
  const stated = String(headers['x-source'] ?? '').toLowerCase();
  const known = STATED_SOURCES.find((source) => source === stated);
  return known ?? (credential === 'api_key' ? 'programmatic' : 'ui');
}

/** The client's version if it is a semantic one, else null. */
export function clientVersionOf(headers: IncomingHttpHeaders): string | null {
  const stated = headers['x-lium-client-version'];
  if (typeof stated !== 'string' || stated.length > MAX_VERSION_CHARS) return null;
  return SEMVER.test(stated) ? stated : null;
}
