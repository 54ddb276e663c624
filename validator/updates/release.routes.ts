/** The gateway's route to the signed digest. The central API publishes it as GET /updater/digest. */
import type { HttpServer } from '#shared/http/server.ts';
import { SignedDigest, UPDATE_DIGEST_PATH } from '#shared/updates/update-manifest.ts';
import type { Releases } from './release.service.ts';

export function registerReleaseRoutes(server: HttpServer, releases: Releases): void {
  server.get(UPDATE_DIGEST_PATH, { schema: { response: { 200: SignedDigest } } }, () =>
    releases.current(),
  );
}
