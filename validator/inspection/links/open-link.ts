/** Opens the connection to one agent: reads and verifies its identity, pins its certificate and verifies its answers. */

import { IDENTITY_PATH, IdentityDocument } from '#shared/api/agent/identity.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { isResponseSigned, RESPONSE_SIGNATURE_HEADER } from '#shared/signing/identity.ts';
import { PeerRefused, type Pin, pinOfCertificate } from '#shared/tls/peer.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { judgeIdentity, type KnownIdentity } from './identity.state.ts';

/** `off` uses plain HTTP for agents on loopback addresses; agents on other addresses always need TLS. */
export type AgentTls = 'on' | 'off';

export type AgentLink = {
  baseUrl: string;
  identity: KnownIdentity;
  transport: Transport;
};

const IDENTITY_TIMEOUT_MS = 10_000;
const MAX_DOCUMENT_CHARS = 16_384;
/** Limit of answers that are not streams; genuine answers are far smaller. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const EVENT_STREAM = 'text/event-stream';

export function agentUrlOf(executor: ExecutorToCheck, tls: AgentTls): string {
  const { executor_ip_address: ip, executor_ip_port: port } = executor;
  const scheme = tls === 'off' && isLoopback(ip) ? 'http' : 'https';
  return `${scheme}://${hostAndPort(ip, port)}`;
}

/**
 * Rejects with PeerRefused if the peer is not the enrolled agent, and with an error of fetch if the peer does not
 * answer.
 */
export async function openLink(
  executor: ExecutorToCheck,
  known: KnownIdentity | null,
  { clock, tls }: { clock: Clock; tls: AgentTls },
): Promise<AgentLink> {
  const baseUrl = agentUrlOf(executor, tls);
  const isSecure = baseUrl.startsWith('https:');
  let presented: Pin | null = null;
  const onPeer = (certificate: Parameters<typeof pinOfCertificate>[0]) => {
    presented = pinOfCertificate(certificate);
  };
  const identityTransport = isSecure
    ? createSecureTransport({ trust: 'anybody', clock, onPeer })
    : PLAIN_TRANSPORT;
  try {
    const document = await readDocument(identityTransport, baseUrl, clock);
    const identity = judgeIdentity(document, { executor, presented, known, nowMs: clock.now() });
    const transport =
      presented === null ? PLAIN_TRANSPORT : createSecureTransport({ trust: presented, clock });
    return { baseUrl, identity, transport };
  } finally {
    identityTransport.close();
  }
}

async function readDocument(
  transport: Transport,
  baseUrl: string,
  clock: Clock,
): Promise<IdentityDocument> {
  const signal = clock.deadline(IDENTITY_TIMEOUT_MS);
  const url = new URL(baseUrl + IDENTITY_PATH);
  const answer = await transport.fetch(url, { method: 'GET', headers: {}, signal });
  const text = Buffer.from(await readWhole(answer, MAX_DOCUMENT_CHARS)).toString('utf8');
  const parsed = answer.ok ? IdentityDocument.safeParse(parseJson(text)) : null;
  if (parsed?.success) return parsed.data;
  // Never quotes the answer: providers read this message, and may enter any address for their node.
  throw new PeerRefused('NOT_ENROLLED', `the program at ${baseUrl} returns no identity document`);
}

/**
 * Reads an answer and verifies the agent's signature; throws PeerRefused. Streams are passed through unsigned, because
 * the pin or the loopback connection already identifies the agent.
 */
export async function checkedAnswer(
  answer: Response,
  nonce: string,
  { identity, executorId }: { identity: KnownIdentity; executorId: string },
): Promise<Response> {
  const { status, headers } = answer;
  if (answer.ok && headers.get('content-type')?.startsWith(EVENT_STREAM) === true) return answer;
  const body = await readWhole(answer, MAX_ANSWER_BYTES);
  const signature = headers.get(RESPONSE_SIGNATURE_HEADER);
  if (!isResponseSigned(identity.publicKey, { status, body, nonce, executorId }, signature)) {
    throw new PeerRefused('RESPONSE_UNSIGNED', 'its answer is not signed with its key');
  }
  return new Response(body.length === 0 ? null : body, { status, headers });
}

async function readWhole(answer: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) throw new RangeError(`the answer exceeds ${maxBytes} bytes`);
    parts.push(part);
  }
  return new Uint8Array(Buffer.concat(parts));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
