/** Requests of accounts for their pods. A request that no process answers is repeated until one does. */
import type { Answer, ApiRequest } from '../world/api.ts';
import { UNREACHABLE } from '../world/services.ts';
import type { World } from '../world/world.ts';
import type { Renter } from './account.ts';
import { codeIn, expectAnswer, SeenPod } from './answers.ts';

export type Requester = { world: World; renter: Renter };

const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ/tAzpR9ZwrM6Ejqg2T6Vm1Z2sCfIHmPpRUSk/4sIW renter';
/** Template with a plain Ubuntu image. */
const TEMPLATE = '1948937e-5049-47ad-8e26-bcf1a4549d70';
/** Pause before a request is repeated. */
const RETRY_MS = 60_000;

/** Members of every rental. */
export const podRequest = ({ name }: Renter) => ({
  pod_name: name,
  template_id: TEMPLATE,
  user_public_key: PUBLIC_KEY,
});

/** Sends a request, and repeats it with the same idempotency key until a process answers. */
export async function send(
  { world, renter }: Requester,
  request: Omit<ApiRequest, 'headers'>,
): Promise<Answer> {
  const once = request.method === 'POST' ? { 'idempotency-key': renter.random.uuid() } : {};
  for (;;) {
    const answer = await world.call({ ...request, headers: { ...renter.headers, ...once } });
    if (codeIn(answer) !== UNREACHABLE) return answer;
    await world.clock.sleep(RETRY_MS);
  }
}

/** Returns the status of a pod, or the error code of the answer. */
export async function podStatus(requester: Requester, podId: string): Promise<string> {
  const { world, renter } = requester;
  const answer = await send(requester, { method: 'GET', path: `/api/pods/${podId}` });
  const code = codeIn(answer);
  const pod = code === null ? expectAnswer(SeenPod, answer, 'pod') : null;
  const status = pod?.status ?? code ?? '';
  const reason = pod?.reason_code ?? null;
  world.journal.record({ kind: 'seen', actor: renter.name, pod: podId, status, reason });
  return status;
}

export async function endPod(requester: Requester, podId: string): Promise<void> {
  const { world, renter } = requester;
  const answer = await send(requester, { method: 'DELETE', path: `/api/pods/${podId}` });
  world.journal.record({ kind: 'ended', actor: renter.name, pod: podId, code: codeIn(answer) });
}
