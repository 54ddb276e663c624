/** Sends signed requests for agents to a validator's gateway. The gateway signs its own requests to the agent. */
import { z } from 'zod';
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import { createSignedConnect } from '#shared/api/agent/connect.ts';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import { RECORDS_PATH } from '#shared/api/central/validator-records.ts';
import {
  CHECK_TIMEOUT_MS,
  HealthReport,
  REWARD_ESTIMATE_PATH,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { createSignedFetch, MAX_REFUSAL_BYTES } from '#shared/signing/signed-fetch.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import {
  MAX_DIGEST_BYTES,
  SignedDigest,
  UPDATE_DIGEST_PATH,
} from '#shared/updates/update-manifest.ts';
import type { Agents } from '../ports.ts';
import { explainedTransport } from './gateway-transport.ts';
import { createGatheredRequests } from './gathered-requests.ts';
import { POD_LISTINGS, SAMPLE_HISTORIES } from './gathered-routes.ts';

/**
 * Time limit of requests for the validator's own documents; longer than the 5 s that the validator waits for its
 * registry.
 */
const ANSWER_TIMEOUT_MS = 8_000;
/**
 * The limit must exceed the size of evidence documents. They contain the responses of an agent, usually a few kilobytes
 * and at most some megabytes.
 */
const MAX_RECORD_BYTES = 16 * 1024 * 1024;

export type GatewayAgentsOptions = {
  /** Base address of the gateway, without a slash at the end. */
  gatewayUrl: string;
  /** ss58 hotkey of the validator that runs the gateway; signed requests name it as their audience. */
  gatewayHotkey: Hotkey;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** Default: plain HTTP. */
  transport?: Transport;
  /** Called with the time of the gateway, as its responses to signed requests show. */
  onPeerTime?(timeMs: number): void;
};

export function createGatewayAgents(options: GatewayAgentsOptions): Agents {
  const { gatewayUrl, gatewayHotkey, signer, clock, random, onPeerTime } = options;
  const { transport = PLAIN_TRANSPORT } = options;
  const explained = explainedTransport(transport, { gatewayUrl, clock });
  const callerTo = (baseUrl: string) => ({
    baseUrl,
    audience: gatewayHotkey,
    signer,
    clock,
    random,
    transport: explained,
    ...(onPeerTime === undefined ? {} : { onPeerTime }),
    signsFor: 'validator' as const,
  });
  const callerOf = (executorId: string) => callerTo(`${gatewayUrl}/v1/executors/${executorId}`);
  const sendTo = (executorId: string) => createSignedFetch(callerOf(executorId));
  const toGateway = { send: createSignedFetch(callerTo(gatewayUrl)), clock };
  const listPods = createGatheredRequests(POD_LISTINGS, toGateway);
  const readHistory = createGatheredRequests(SAMPLE_HISTORIES, toGateway);

  /**
   * Requests a document from the validator. Throws `not_found`, and throws `upstream_unavailable` for any other
   * failure.
   */
  async function requestDocument<T>(
    path: string,
    { schema, what, maxBytes = MAX_DIGEST_BYTES }: RequestedDocument<T>,
  ): Promise<T> {
    const signal = clock.deadline(ANSWER_TIMEOUT_MS);
    const send = createSignedFetch(callerTo(gatewayUrl));
    try {
      const response = await send({ method: 'GET', path, signal });
      if (!response.ok) throw await refusalIn(response);
      return parsedBy(schema, await boundedText(response, maxBytes));
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not_found') throw error;
      const message = `${what} is not available (${messageOf(error)})`;
      const hint = error instanceof ApiError ? { hint: error.hint } : {};
      throw new ApiError('upstream_unavailable', message, { cause: error, ...hint });
    }
  }
  return {
    hotkey: signer.hotkey,
    gateway: { ...addressOf(gatewayUrl), hotkey: gatewayHotkey },
    clientOf(executorId) {
      const send = sendTo(executorId);
      const client = createAgentClient({ send, clock, signsFor: 'validator' });
      return {
        ...client,
        listPods: () => listPods(executorId, null, client.listPods),
        sampleHistory: (query) => readHistory(executorId, query, () => client.sampleHistory(query)),
      };
    },
    terminalOf(executorId, podId, { query, requestId, signal }) {
      const { cols, rows, term } = query;
      const search = new URLSearchParams({ cols: String(cols), rows: String(rows), term });
      return createSignedConnect(callerOf(executorId))({
        path: `/v1/pods/${podId}/exec?${search}`,
        headers: { 'x-request-id': requestId },
        maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES,
        signal,
      });
    },
    async checkNow(executorId, wish) {
      const signal = clock.deadline(CHECK_TIMEOUT_MS);
      const request = { method: 'POST', path: '/check', body: JSON.stringify(wish), signal };
      try {
        const response = await sendTo(executorId)(request);
        if (!response.ok) throw new Error(`the validator answered with status ${response.status}`);
        return HealthReport.parse(await response.json());
      } catch (error) {
        const message = `The node could not be checked (${messageOf(error)})`;
        throw new ApiError('upstream_unavailable', message, { cause: error });
      }
    },
    signedDigest: () =>
      requestDocument(UPDATE_DIGEST_PATH, { schema: SignedDigest, what: 'The digest' }),
    rewardShares({ gpu_model, gpu_count, price_uusd, fee_uusd }) {
      const query = new URLSearchParams({
        gpu_model,
        gpu_count: String(gpu_count),
        price_uusd: String(price_uusd),
        ...(fee_uusd === undefined ? {} : { fee_uusd: String(fee_uusd) }),
      });
      const path = `${REWARD_ESTIMATE_PATH}?${query}`;
      return requestDocument(path, { schema: RewardShares, what: 'The estimate' });
    },
    record(path, schema) {
      const expected = { schema, what: "The validator's record", maxBytes: MAX_RECORD_BYTES };
      return requestDocument(`${RECORDS_PATH}${path}`, expected);
    },
  };
}

type RequestedDocument<T> = {
  schema: z.ZodType<T>;
  /** First words of the message of a failure. */
  what: string;
  maxBytes?: number;
};

/**
 * Returns the validator's `not_found` with its message and hint, `upstream_unavailable` with its hint, and any other
 * error as its status: messages of other errors may contain addresses.
 */
async function refusalIn(response: Response): Promise<Error> {
  const text = await boundedText(response, MAX_REFUSAL_BYTES).catch(() => '');
  const { error } = Refusal.safeParse(jsonIn(text)).data ?? {};
  const status = `the validator answered with status ${response.status}`;
  if (error?.code === 'upstream_unavailable')
    return new ApiError(error.code, status, { hint: error.hint });
  return error === undefined || response.status !== NOT_FOUND
    ? new Error(status)
    : new ApiError('not_found', error.message, { hint: error.hint });
}

const NOT_FOUND = 404;
const Refusal = z.object({
  error: z.object({
    code: z.enum(['not_found', 'upstream_unavailable']),
    message: z.string().max(1_000),
    hint: z.string().max(1_000),
  }),
});

/** Returns a short error, because a validation error would list every member of a long response. */
function parsedBy<T>(schema: z.ZodType<T>, text: string): T {
  const parsed = schema.safeParse(jsonIn(text));
  if (parsed.success) return parsed.data;
  throw new Error('the response of the validator has another form');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** An IPv6 address is returned without its brackets. */
function addressOf(url: string): { host: string; port: number } {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port) };
}
