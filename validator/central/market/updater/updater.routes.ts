/** GET /updater/digest (contract 11): the validator's signed answer, passed on as it is. */
import type { HttpServer } from '#shared/http/server.ts';
import { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { SignedDigests } from './updater.service.ts';

/** Registers it under both of its names. */
export function registerUpdaterRoutes(api: HttpServer, digests: SignedDigests): void {
  for (const path of ['/updater/digest', '/watchtower/digest']) {
    api.get(
      path,
      {
        config: { auth: 'none' },
        schema: { tags: ['Validators'], response: { 200: SignedDigest } },
      },
      () => digests.current(),
    );
  }
}
