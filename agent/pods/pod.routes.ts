/** HTTP routes of pods. */
import { z } from 'zod';
import {
  PodId,
  PodList,
  PodPut,
  PodSpec,
  PodVerdict,
  PodView,
  RebootRequest,
  SshKeysRequest,
  StopRequest,
} from '#shared/api/agent/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { PodService } from './pod.service.ts';

const params = z.object({ id: PodId });
const response = { 200: PodView };

/** Registers the routes. The server's hooks check signatures and roles before the handlers run. */
export function registerPodRoutes(server: HttpServer, pods: PodService): void {
  server.get('/v1/pods', { schema: { response: { 200: PodList } } }, async () => ({
    pods: pods.list(),
  }));
  server.post(
    '/v1/pods/explain',
    { schema: { body: PodSpec, response: { 200: PodVerdict } } },
    async ({ body }) => pods.explain(body),
  );
  server.get('/v1/pods/:id', { schema: { params, response } }, async ({ params }) =>
    pods.get(params.id),
  );
  server.put(
    '/v1/pods/:id',
    { schema: { params, body: PodPut, response } },
    async ({ params, body }) => pods.put(params.id, body),
  );
  server.delete('/v1/pods/:id', { schema: { params, response } }, async ({ params }) =>
    pods.remove(params.id),
  );
  server.post(
    '/v1/pods/:id/reboot',
    { schema: { params, body: RebootRequest, response } },
    async ({ params, body }) => pods.reboot(params.id, body.reboot),
  );
  server.put(
    '/v1/pods/:id/ssh-keys',
    { schema: { params, body: SshKeysRequest, response } },
    async ({ params, body }) => pods.putSshKeys(params.id, body.ssh_public_keys),
  );
  server.put(
    '/v1/pods/:id/standing',
    { schema: { params, body: StopRequest, response } },
    async ({ params, body }) => pods.setStopped(params.id, body.stopped),
  );
}
