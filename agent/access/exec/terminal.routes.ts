/** GET /v1/pods/{id}/exec: a shell in a pod, as a WebSocket. */
import { z } from 'zod';
import { PodId } from '#shared/api/agent/pod.ts';
import { MAX_TERMINAL_MESSAGE_BYTES, TerminalQuery } from '#shared/api/agent/terminal.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { upgradeRequired } from '#shared/http/upgrade.ts';
import type { TerminalHost } from './terminals.ts';

export function registerTerminalRoutes(server: HttpServer, host: TerminalHost): void {
  const schema = { params: z.object({ id: PodId }), querystring: TerminalQuery };
  const config = { websocket: true } as const;
  server.get('/v1/pods/:id/exec', { config, schema }, async (request, reply) => {
    if (request.upgrade === null) throw upgradeRequired();
    const { accept } = request.upgrade;
    const terminals = await host.load();
    const slot = terminals.reserve(request.params.id);
    try {
      const socket = await accept(reply, { maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES });
      const caller = { signer: request.caller, requestId: request.id };
      terminals.serve(socket, { slot, query: request.query, caller });
    } catch (error) {
      slot.release();
      throw error;
    }
    return reply;
  });
}
