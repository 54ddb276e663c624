/** Whether the agent at an address is this executor's and ready to work, as its own public routes say. */
import { VersionInfo } from '#shared/api/agent/inventory.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Transport } from '#shared/tls/transport.ts';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 64 * 1024;

export type AgentReadyOptions = {
  executorId: string;
  scheme: 'http' | 'https';
  port: number;
  /** Accepts the agent's own key alone. Asked for once it is needed. */
  openTransport(): Transport;
  clock: Clock;
};

export function createAgentReady(options: AgentReadyOptions) {
  const { executorId, scheme, port, clock } = options;
  let transport: Transport | null = null;
  return async (host: string): Promise<boolean> => {
    const signal = clock.deadline(TIMEOUT_MS);
    try {
      transport ??= options.openTransport();
      const { fetch } = transport;
      const read = (path: string) =>
        fetch(new URL(`${scheme}://${hostAndPort(host, port)}${path}`), {
          ...{ method: 'GET', headers: {}, signal },
        });
      const version = await boundedText(await read('/version'), MAX_BYTES);
      if (VersionInfo.parse(JSON.parse(version)).executor_id !== executorId) return false;
      const readiness = await read('/readyz');
      await readiness.body?.cancel();
      return readiness.status === 200;
    } catch {
      // Whatever the reason, it is not ready now.
      return false;
    }
  };
}
