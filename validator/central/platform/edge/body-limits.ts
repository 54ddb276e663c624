/** How large a body each route takes: as much as its fields can need, not as much as the largest one's. */
import type { HttpServer } from '#shared/http/server.ts';
import type { AuthRule } from '../../accounts/auth/identity.ts';

const KIB = 1024;

/** Bytes, by who may call: what anybody can send costs least, an inventory of a host most. */
const LIMITS: Record<AuthRule, number> = {
  none: 16 * KIB,
  session: 16 * KIB,
  portal: 64 * KIB,
  user: 256 * KIB,
  validator: 1024 * KIB,
  'validator-or-account': 1024 * KIB,
  weights: 1024 * KIB,
};

/** For routes registered afterwards; one that states a limit of its own keeps it. */
export function installBodyLimits(server: HttpServer): void {
  server.addHook('onRoute', (route) => {
    route.bodyLimit ??= LIMITS[route.config?.auth ?? 'none'];
  });
}
