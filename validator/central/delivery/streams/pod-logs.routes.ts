/** GET /pods/{pod_id}/logs: server-sent events, or the same frames on a WebSocket. */

import { sendStream } from '#shared/http/event-stream.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import type { CredentialWatch } from '../../accounts/auth/credential-watch.ts';
import { userOf } from '../../platform/identity.ts';
import type { PodLogs } from './pod-logs.ts';
import { lastEventIdOf, resumableLog, wantsResumable } from './resumable.ts';
import { PodLogParams, PodLogsQuery } from './stream.schemas.ts';

export type PodLogRoutesDeps = {
  logs: PodLogs;
  credentials: CredentialWatch;
};

const DESCRIPTION =
  'Server-sent events: `data:` lines only, or, with `format=events` or the Accept header ' +
  '`text/event-stream; profile=resumable`, with id, event and retry lines, to be resumed by Last-Event-ID. ' +
  'An addition of this service: as a WebSocket, the same path sends the ' +
  'JSON of each event as a text message. No cookie is a credential here, so that the Origin header ' +
  'does not matter.';

export function registerPodLogRoutes(api: HttpServer, deps: PodLogRoutesDeps): void {
  api.get(
    '/pods/:pod_id/logs',
    {
      config: { auth: 'user', websocket: true },
      schema: {
        tags: ['Pods'],
        description: DESCRIPTION,
        params: PodLogParams,
        querystring: PodLogsQuery,
      },
    },
    async (request, reply) => {
      const { accountId, credential } = userOf(request);
      const gone = clientGone(request, reply);
      const frames = await deps.logs.open(
        {
          accountId,
          podId: request.params.pod_id,
          query: request.query,
          lastEventId: lastEventIdOf(request),
          revoked: deps.credentials.revoked(credential, gone),
        },
        gone,
      );
      const isResumable =
        request.upgrade === null && wantsResumable(request.query.format, request.headers.accept);
      await sendStream(request, reply, isResumable ? resumableLog(frames) : frames);
    },
  );
}
