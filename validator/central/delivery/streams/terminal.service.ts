/**
 * Terminals of pods. The service relays each terminal to the node, logs its start and end, and ends it when the pod has
 * ended or the credential is revoked.
 */
import type { WebSocket } from 'ws';
import type { TerminalQuery } from '#shared/api/agent/terminal.ts';
import { CLOSE, relayWebSockets } from '#shared/http/websocket.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { Agents } from '../../platform/ports.ts';
import {
  CHECK_INTERVAL_MS,
  createStreamGuard,
  type Guarded,
  type PodAccess,
} from './stream-guard.ts';
import { createStreamLimit, TERMINAL_LIMITS } from './stream-limits.ts';

export type TerminalRequest = {
  identity: UserIdentity;
  podId: string;
  query: TerminalQuery;
  requestId: string;
  revoked: Guarded['revoked'];
};

/** A terminal that is open on the node while the client's connection is not upgraded to a WebSocket yet. */
export type OpenTerminal = {
  /** Relays between the client and the node until either side closes. */
  join(near: WebSocket): Promise<void>;
  /** Closes the terminal if the client has disconnected. */
  abandon(): void;
};

export type Terminals = ReturnType<typeof createTerminals>;

export function createTerminals(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  agents: Agents;
  pods: PodAccess;
  stopping: AbortSignal;
}) {
  const { db, clock, agents, pods, stopping } = deps;
  const guard = createStreamGuard({ db, pods, stopping });
  const limit = createStreamLimit(TERMINAL_LIMITS);

  /** Closes `near`, and thereby the terminal, when the pod has ended or the credential is revoked. */
  async function watch(near: WebSocket, guarded: Guarded, log: Log): Promise<void> {
    const closed = new AbortController();
    near.once('close', () => closed.abort());
    const wake = AbortSignal.any([closed.signal, guarded.revoked]);
    while (!closed.signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, wake).catch(() => undefined);
      if (closed.signal.aborted) return;
      // A failed check does not end the terminal; the next one may succeed.
      const reason = await guard.endReason(guarded).catch((error: unknown) => {
        log.warn({ err: error }, 'terminal check failed');
        return null;
      });
      if (reason !== null) return near.close(CLOSE.normal, reason);
    }
  }

  async function relay(near: WebSocket, far: WebSocket, request: TerminalRequest): Promise<void> {
    const { accountId, credential } = request.identity;
    const log = deps.log.child({ pod_id: request.podId, request_id: request.requestId });
    const actor = {
      account_id: accountId,
      credential: credential.type,
      api_key_id: credential.type === 'api_key' ? credential.keyId : null,
    };
    const startedMs = clock.monotonicMs();
    const bytes = { sent: 0, received: 0 };
    log.info(actor, 'terminal opened');
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
    log.info({ ...actor, seconds, ...bytes }, 'terminal closed');
  }

  return {
    /** Throws 404, 400 for a pod that is not running, 429, or the node's error. */
    async open(request: TerminalRequest, gone: AbortSignal): Promise<OpenTerminal> {
      const { accountId } = request.identity;
      const pod = await pods.requireOwnPod(db, accountId, request.podId, clock.now());
      if (pod.state !== 'running') {
        throw new ApiError('pod_state_conflict', 'A terminal needs a running pod');
      }
      gone.throwIfAborted();
      const release = limit.acquire(pod.id, accountId);
      const { query, requestId } = request;
      const options = { query, requestId, signal: gone };
      const opening = agents.terminalOf(pod.executor_id, pod.id, options);
      const far = await opening.catch((error: unknown) => {
        release();
        throw error;
      });
      far.once('close', release);
      return {
        join: (near) => relay(near, far, request),
        abandon: () => far.terminate(),
      };
    },
  };
}
