/** Whether ports of a host are reached: POST /v1/port-checks has the agent listen on some for a while (validator reference 5). */
import { z } from 'zod';
import { sha256Hex } from '../../signing/canonical-request.ts';
import { Name, Port } from './bounds.ts';

export const MAX_CHECKED_PORTS = 300;
const MAX_OPEN_MS = 40_000;

export const PortCheckRequest = z.strictObject({
  nonce: z.string().regex(/^[A-Za-z0-9_-]{22}$/, '16 bytes in base64url'),
  executor_id: Name,
  ports: z.array(Port).min(1).max(MAX_CHECKED_PORTS),
  open_ms: z.int().min(100).max(MAX_OPEN_MS),
});
export type PortCheckRequest = z.output<typeof PortCheckRequest>;

/** Those that it listens on now: of its range, and free. */
export const PortCheckOpened = z.object({ opened: z.array(Port).max(MAX_CHECKED_PORTS) });
export type PortCheckOpened = z.output<typeof PortCheckOpened>;

/** What a port answers to whoever connects: a way that ends at another port or host answers something else. */
export function portAnswer(
  { nonce, executor_id }: Pick<PortCheckRequest, 'nonce' | 'executor_id'>,
  port: number,
): string {
  return sha256Hex(`podwright-port-v1\n${nonce}\n${executor_id}\n${port}`);
}
