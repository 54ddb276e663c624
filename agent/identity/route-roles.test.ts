import { expect, it } from 'vitest';
import { AGENT_ROUTES } from '#shared/api/agent/routes.ts';
import { ROLES, type Role } from '#shared/signing/request-verifier.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createGuardedServer, EXECUTOR_ID } from '../../test/fakes/agents/guarded-server.ts';
import { partsToSign, signatureHeaders } from '../../test/fakes/agents/sign-request.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { PUBLIC_PATHS, rolesFor } from './route-roles.ts';

const signer = createSigner(new Uint8Array(32).fill(1));
const cases = AGENT_ROUTES.flatMap((route) =>
  ROLES.map((role) => ({ ...route, roles: route.roles as readonly Role[], role })),
);

it.each(cases)('$method $path admits $role as listed', async ({ method, path, roles, role }) => {
  const clock = createManualClock();
  const { server } = createGuardedServer(clock, [{ hotkey: signer.hotkey, roles: [role] }]);
  server.route({ method, url: path, handler: async () => ({}) });
  const url = path.replace(':id', 'x');
  const request = { method, url, audience: EXECUTOR_ID, timestampMs: clock.now() };
  const headers = signatureHeaders(signer, partsToSign(signer, request));
  const response = await server.inject({ method, url, headers });
  expect(response.statusCode).toBe(roles.includes(role) ? 200 : 403);
});

it('opens the public paths for reading only, and nothing that is on no list', () => {
  for (const path of PUBLIC_PATHS) {
    expect([rolesFor('GET', path), rolesFor('HEAD', path)]).toEqual(['public', 'public']);
    expect(rolesFor('POST', path)).toBeNull();
  }
  expect(rolesFor('GET', '/v1/pods/:id/files')).toBeNull();
  expect(rolesFor('HEAD', '/v1/inventory')).toBeNull();
  expect(rolesFor('GET', '')).toBeNull();
});
