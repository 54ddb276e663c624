/** Terminals of pods for their owners: relayed to the node, ended with the pod or the credential, recorded. */
import type { WebSocket } from 'ws';
import type { TerminalQuery } from '#shared/api/agent/terminal.ts';
import { CLOSE, relayWebSockets } from '#shared/http/websocket.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { requireOwnPod } from '../../market/pods/pod-access.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { Agents } from '../../platform/ports.ts';
import { CHECK_INTERVAL_MS, createStreamGuard, type Guarded } from './stream-guard.ts';
import { createStreamSeats, TERMINAL_LIMITS } from './stream-limits.ts';

export type TerminalRequest = {
  identity: UserIdentity;
  podId: string;
  query: TerminalQuery;
  requestId: string;
  revoked: Guarded['revoked'];
};

/** A terminal that waits for its client. */
export type OpenTerminal = {
  /** Resolves when it is over. */
  join(near: WebSocket): Promise<void>;
  /** For when the client is gone. */
  abandon(): void;
};

export type Terminals = ReturnType<typeof createTerminals>;

export function createTerminals(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  agents: Agents;
  stopping: AbortSignal;
}) {
  const { db, clock, agents, stopping } = deps;
  const guard = createStreamGuard({ db, stopping });
  const seats = createStreamSeats(TERMINAL_LIMITS);

  /** Ends `near`, and with it the terminal, as soon as the pod or the credential is gone. */
  async function watch(near: WebSocket, guarded: Guarded, log: Log): Promise<void> {
    const closed = new AbortController();
    near.once('close', () => closed.abort());
    const wake = AbortSignal.any([closed.signal, guarded.revoked]);
    while (!closed.signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, wake).catch(() => undefined);
      if (closed.signal.aborted) return;
      // A failure to look is no reason to end it; the next look may succeed.
      const reason = await guard.endReason(guarded).catch((error: unknown) => {
        log.warn({ err: error }, 'a terminal was not looked at');
        return null;
      });
      if (reason !== null) return near.close(CLOSE.normal, reason);
    }
  }

  async function relay(near: WebSocket, far: WebSocket, request: TerminalRequest): Promise<void> {
    const { accountId, credential } = request.identity;
    const log = deps.log.child({ pod_id: request.podId, request_id: request.requestId });
    const who = {
      account_id: accountId,
      credential: credential.type,
      api_key_id: credential.type === 'api_key' ? credential.keyId : null,
    };
    const startedMs = clock.monotonicMs();
    const bytes = { sent: 0, received: 0 };
    log.info(who, 'terminal begins');
    void watch(near, request, log);
    await relayWebSockets(near, far, {
      toFar(count) {
        bytes.received += count;
      },
      toNear(count) {
        bytes.sent += count;
      },
    });
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1_000);
    log.info({ ...who, seconds, ...bytes }, 'terminal ends');
  }

  return {
    /** Throws 404, 400 when the pod does not run, 429, or what the node says. */
    async open(request: TerminalRequest, gone: AbortSignal): Promise<OpenTerminal> {
      const { accountId } = request.identity;
      const pod = await requireOwnPod(db, accountId, request.podId, clock.now());
      if (pod.state !== 'running') {
        throw new ApiError('pod_state_conflict', 'A terminal needs a running pod');
      }
      gone.throwIfAborted();
      const leave = seats.take(pod.id, accountId);
      const { query, requestId } = request;
      const wish = { query, requestId, signal: gone };
      const far = await agents.terminalOf(pod.executor_id, pod.id, wish).catch((error: unknown) => {
        leave();
        throw error;
      });
      far.once('close', leave);
      return {
        join: (near) => relay(near, far, request),
        abandon: () => far.terminate(),
      };
    },
  };
}
