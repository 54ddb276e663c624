/** GET /pods/{pod_id}/logs: server-sent events, or the same frames on a WebSocket. */

import { sendStream } from '#shared/http/event-stream.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import type { CredentialWatch } from '../../accounts/auth/credential-watch.ts';
import { userOf } from '../../platform/identity.ts';
import type { PodLogs } from './pod-logs.ts';
import { lastEventIdOf, resumableLog, wantsResumable } from './resumable.ts';
import { PodLogParams, PodLogsQuery, SERVER_SENT_EVENTS } from './stream.schemas.ts';

export type PodLogRoutesDeps = {
  logs: PodLogs;
  credentials: CredentialWatch;
};

export function registerPodLogRoutes(api: HttpServer, deps: PodLogRoutesDeps): void {
  api.get(
    '/pods/:pod_id/logs',
    {
      config: { auth: 'user', websocket: true },
      schema: {
        tags: ['Pods'],
        summary: 'Read or follow the log of a pod',
        description:
          'Sends the build log and then the container\'s log as server-sent events. Each `data:` line is a JSON object: `{"log","id","ts","stream"}` for one line of the log, `{"meta"}` for a gap, a restart or the end, `{}` as a keep-alive every 15 seconds. With `format=events`, or the header `Accept: text/event-stream; profile=resumable`, frames have ids and can be resumed with `Last-Event-ID`. As a WebSocket the same path sends the JSON of each event as a text message. Cookies are no credential, so the Origin header grants nothing. An upgrade that is refused gets the status and error body of an ordinary request. A request with an Origin header, as browsers send it, is upgraded instead and closed with the code 4000 + status (4401, 4404, 4429) and the error code as reason, because pages cannot read the status.',
        errors: {
          pod_not_found: 'there is no such pod',
          forbidden: 'the pod belongs to another account',
          rate_limited: 'too many streams of this account or pod are open',
        },
        retry: 'Safe: resume with the id of the last frame.',
        params: PodLogParams,
        querystring: PodLogsQuery,
        response: { 200: SERVER_SENT_EVENTS },
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
