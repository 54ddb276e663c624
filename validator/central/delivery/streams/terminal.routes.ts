/** GET /pods/{id}/terminal: a WebSocket with a login shell in the pod. */
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone, upgradeRequired } from '#shared/http/upgrade.ts';
import type { CredentialWatch } from '../../accounts/auth/credential-watch.ts';
import { userOf } from '../../platform/identity.ts';
import { PodStreamParams, PodTerminalQuery, WEB_SOCKET } from './stream.schemas.ts';
import type { Terminals } from './terminal.service.ts';

export type TerminalRoutesDeps = {
  terminals: Terminals;
  credentials: CredentialWatch;
};

const tags = ['Pods'];
const params = PodStreamParams;

export function registerTerminalRoutes(api: HttpServer, deps: TerminalRoutesDeps): void {
  api.get(
    '/pods/:id/terminal',
    {
      config: { auth: 'user', websocket: true },
      schema: {
        tags,
        summary: 'Open a terminal in a pod',
        description:
          'Upgrades to a WebSocket with a login shell in a running pod. Binary messages are the terminal\'s bytes in both directions; text messages are JSON: `{"type":"resize","cols","rows"}` from the client, `{"type":"exit","code"}` last from the server. A request without the upgrade is answered with 426. Cookies are no credential, so the Origin header grants nothing. An upgrade that is refused gets the status and error body of an ordinary request. A request with an Origin header, as browsers send it, is upgraded instead and closed with the code 4000 + status (4401, 4404, 4429) and the error code as reason, because pages cannot read the status.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the pod is not running',
          rate_limited: 'too many terminals are open',
        },
        retry: 'A repeat opens another shell. The first shell ends with its connection.',
        params,
        querystring: PodTerminalQuery,
        response: { 101: WEB_SOCKET },
      },
    },
    async (request, reply) => {
      if (request.upgrade === null) throw upgradeRequired();
      const { accept } = request.upgrade;
      const identity = userOf(request);
      const gone = clientGone(request, reply);
      const terminal = await deps.terminals.open(
        {
          identity,
          podId: request.params.id,
          query: request.query,
          requestId: request.id,
          revoked: deps.credentials.revoked(identity.credential, gone),
        },
        gone,
      );
      try {
        const near = await accept(reply, { maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES });
        await terminal.join(near);
      } catch (error) {
        terminal.abandon();
        throw error;
      }
      return reply;
    },
  );
}
