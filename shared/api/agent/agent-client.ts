/** Typed client of the agent's interface: direct (validator) or through the gateway (central). */
import { z } from 'zod';
import { readSse } from '../../http/event-stream.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ApiError, isErrorCode, messageOf } from '../../runtime/errors.ts';
import { durationText } from '../../signing/clock-difference.ts';
import type { SignedFetch } from '../../signing/signed-fetch.ts';
import { type ChallengeRequest, Commitment, Opening, type OpenRequest } from './challenges.ts';
import {
  type EgressCheckRequest,
  EgressCheckResult,
  type ImageCheckRequest,
  ImageCheckResult,
  PortCheckOpened,
  type PortCheckRequest,
} from './host-checks.ts';
import { Inventory, VerifyResult } from './inventory.ts';
import { SampleHistory, type SampleHistoryQuery, sampleHistoryPath } from './metric-history.ts';
import { HostMetrics, PodMetrics } from './metrics.ts';
import type { NotebookRequest } from './notebook.ts';
import {
  type BackupRequestInput,
  type DrillRequestInput,
  OperationView,
  type RestoreRequestInput,
  TargetView,
} from './operations.ts';
import { LogFrame, PodList, type PodPutInput, PodView } from './pod.ts';
import { VolumeList, type VolumePut, VolumeView } from './volumes.ts';

export type AgentClient = ReturnType<typeof createAgentClient>;

export type AgentClientOptions = { send: SignedFetch; clock: Clock; signsFor?: Verifier };
/** Process that verifies a signature. */
type Verifier = 'node' | 'validator';

const CALL_TIMEOUT_MS = 15_000;
const VERIFY_TIMEOUT_MS = 120_000;
const OPENING_TIMEOUT_MS = 90_000;
const MAX_RESPONSE_CHARS = 8 * 1024 * 1024;

/**
 * Every call rejects with ApiError: the agent's error with its code and status, or `upstream_unavailable` without a
 * usable response. In the latter case it is unknown whether the call had an effect.
 * `signsFor` is the process that verifies the signatures of `send`: the agent by default, or the validator whose
 * gateway relays.
 */
export function createAgentClient({ send, clock, signsFor = 'node' }: AgentClientOptions) {
  const refusal = (status: number, body: unknown) =>
    agentError(status, body, { signsFor, nowMs: clock.now() });

  async function call<T>(
    schema: z.ZodType<T>,
    method: string,
    path: string,
    body?: unknown,
    timeoutMs: number = CALL_TIMEOUT_MS,
  ): Promise<T> {
    const signal = clock.deadline(timeoutMs);
    const request = { method, path, signal };
    const response = await reach(() =>
      send(body === undefined ? request : { ...request, body: JSON.stringify(body) }),
    );
    const text = await reach(() => response.text());
    if (!response.ok) throw refusal(response.status, parseBody(text));
    const parsed = schema.safeParse(parseBody(text));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = `${issue?.path.join('.') || 'the body'}: ${issue?.message ?? 'invalid'}`;
    const message = `Unexpected response from the node (${where})`;
    throw unavailable(message, new InvalidResponse(message, { cause: parsed.error }));
  }

  /** Older agents reject the member `renter`: they run operations in the order of their arrival. */
  async function postOperation(path: string, body: { renter?: unknown }): Promise<OperationView> {
    const post = (sent: object) => call(OperationView, 'POST', path, sent);
    return post(body).catch((error: unknown) => {
      const { renter, ...rest } = body;
      const isRejected = error instanceof ApiError && error.code === 'validation_error';
      if (!isRejected || renter === undefined) throw error;
      return post(rest);
    });
  }

  return {
    inventory: () => call(Inventory, 'GET', '/v1/inventory'),
    hostMetrics: () => call(HostMetrics, 'GET', '/v1/metrics/host'),
    podMetrics: (id: string) => call(PodMetrics, 'GET', `/v1/pods/${id}/metrics`),
    sampleHistory: (query: SampleHistoryQuery) =>
      call(SampleHistory, 'GET', sampleHistoryPath(query)),
    listPods: async () => (await call(PodList, 'GET', '/v1/pods')).pods,
    getPod: (id: string) => call(PodView, 'GET', `/v1/pods/${id}`),
    putPod: (id: string, spec: PodPutInput) => call(PodView, 'PUT', `/v1/pods/${id}`, spec),
    deletePod: (id: string) => call(PodView, 'DELETE', `/v1/pods/${id}`),
    rebootPod: (id: string, reboot: number) =>
      call(PodView, 'POST', `/v1/pods/${id}/reboot`, { reboot }),
    putSshKeys: (id: string, keys: readonly string[]) =>
      call(PodView, 'PUT', `/v1/pods/${id}/ssh-keys`, { ssh_public_keys: keys }),
    setStopped: (id: string, stopped: boolean) =>
      call(PodView, 'PUT', `/v1/pods/${id}/standing`, { stopped }),
    postNotebook: (id: string, request: NotebookRequest) =>
      call(PodView, 'POST', `/v1/pods/${id}/notebook`, request),
    postBackup: (podId: string, request: BackupRequestInput) =>
      postOperation(`/v1/pods/${podId}/backups`, request),
    postRestore: (podId: string, request: RestoreRequestInput) =>
      postOperation(`/v1/pods/${podId}/restores`, request),
    restoreTarget: (podId: string, path: string) => {
      const query = new URLSearchParams({ path });
      return call(TargetView, 'GET', `/v1/pods/${podId}/restore-target?${query}`);
    },
    postDrill: (podId: string, request: DrillRequestInput) =>
      postOperation(`/v1/pods/${podId}/verifications`, request),
    listVolumes: async () => (await call(VolumeList, 'GET', '/v1/volumes')).volumes,
    putVolume: (id: string, request: VolumePut) =>
      call(VolumeView, 'PUT', `/v1/volumes/${id}`, request),
    deleteVolume: (id: string) => call(VolumeView, 'DELETE', `/v1/volumes/${id}`),
    postVolumeBackup: (id: string, request: BackupRequestInput) =>
      postOperation(`/v1/volumes/${id}/backups`, request),
    postVolumeRestore: (id: string, request: RestoreRequestInput) =>
      postOperation(`/v1/volumes/${id}/restores`, request),
    getOperation: (id: string) => call(OperationView, 'GET', `/v1/operations/${id}`),
    cancelOperation: (id: string) => call(OperationView, 'POST', `/v1/operations/${id}/cancel`),
    verify: (request: { gpu_uuids: string[]; cpu_cores?: number }) =>
      call(VerifyResult, 'POST', '/v1/verify', request, VERIFY_TIMEOUT_MS),
    checkPorts: (request: PortCheckRequest) =>
      call(PortCheckOpened, 'POST', '/v1/port-checks', request),
    checkImages: (request: ImageCheckRequest) =>
      call(ImageCheckResult, 'POST', '/v1/image-checks', request),
    checkEgress: (request: EgressCheckRequest) =>
      call(EgressCheckResult, 'POST', '/v1/egress-checks', request),
    challenge: (request: ChallengeRequest) =>
      call(Commitment, 'POST', '/v1/challenges', request, request.deadline_ms + CALL_TIMEOUT_MS),
    openChallenge: (id: string, request: OpenRequest) =>
      call(Opening, 'POST', `/v1/challenges/${id}/open`, request, OPENING_TIMEOUT_MS),

    /** Yields frames until the stream ends or `signal` aborts. Rejects with ApiError only before the first frame. */
    async podLogs(
      id: string,
      query: { tail: number; follow: boolean; since?: string; stream?: 'stdout' | 'stderr' },
      signal: AbortSignal,
    ): Promise<AsyncGenerator<LogFrame>> {
      const search = new URLSearchParams({
        tail: String(query.tail),
        follow: String(query.follow),
        ...(query.since === undefined ? {} : { since: query.since }),
        ...(query.stream === undefined ? {} : { stream: query.stream }),
      });
      const path = `/v1/pods/${id}/logs?${search}`;
      const response = await reach(() => send({ method: 'GET', path, signal }));
      if (!response.ok) {
        throw refusal(response.status, parseBody(await reach(() => response.text())));
      }
      return parseFrames(response);
    },
  };
}

/** Keeps a reference to the response: fetch would cancel an unread body when its response is garbage-collected. */
async function* parseFrames(response: Response): AsyncGenerator<LogFrame> {
  for await (const value of readSse(response.body ?? [])) {
    const frame = LogFrame.safeParse(value);
    if (frame.success) yield frame.data;
  }
}

/** Parses a response body. Undefined if it is not JSON or too long. */
function parseBody(text: string): unknown {
  if (text.length > MAX_RESPONSE_CHARS) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function reach<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(`The node did not answer (${messageOf(error)})`, error);
  }
}

function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', message, { cause });
}

/**
 * The part of the agent's error body that is passed on to the caller; any other body becomes `upstream_unavailable`.
 */
const AgentErrorBody = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string() }),
  details: z.record(z.string(), z.unknown()).nullish(),
});

/** A response that does not match the agent's interface. */
export class InvalidResponse extends Error {
  override name = 'InvalidAnswer';
}

const SERVER_TIME = 'server_time_ms';

/** Returns the error for callers of a gateway whose call an agent rejected because of its time; null for other errors. */
export function relayedClockRefusal(error: unknown): ApiError | null {
  if (!(error instanceof ApiError) || error.code !== 'clock_or_restart') return null;
  const { details = {} } = error.options;
  const options = { cause: error, details, isExpected: true } as const;
  return new ApiError('upstream_unavailable', error.message, options);
}

/** Returns true if the call failed because the clock of the node differs. */
export function isClockRefusal({ options }: ApiError): boolean {
  return options.details?.[SERVER_TIME] !== undefined;
}

/** Returns true if a call failed because the response was invalid, and false if there was no response. */
export function isInvalidResponse(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof InvalidResponse;
}

/**
 * Returns true if a call failed without any response. A gateway responds even if the agent does not answer. Without a
 * response from the gateway, the gateway failed, not the agent.
 */
export function isWithoutResponse(error: ApiError): boolean {
  return error.options.status === undefined && !isInvalidResponse(error);
}

/**
 * Converts an error response into an ApiError. `body` is the parsed JSON; undefined if it is not JSON. A refusal because
 * of the time of signing states the difference to `nowMs`, the time of this process.
 */
export function agentError(
  status: number,
  body: unknown,
  { signsFor, nowMs }: { signsFor: Verifier; nowMs: number },
): ApiError {
  const parsed = AgentErrorBody.safeParse(body);
  if (!parsed.success || !isErrorCode(parsed.data.error.code)) {
    // The status is only logged. A provider can configure any address and read the resulting error, so the status would
    // reveal services inside our network.
    const cause = new InvalidResponse(`status ${status}`);
    return new ApiError('upstream_unavailable', 'Unexpected response from the node', { cause });
  }
  const { code, message, hint } = parsed.data.error;
  const { details } = parsed.data;
  const theirMs = details?.[SERVER_TIME];
  if (code === 'clock_or_restart' && typeof theirMs === 'number') {
    const differs = `The ${signsFor}’s clock differs by ${durationText(theirMs - nowMs)}`;
    // The gateway failed, not the agent.
    if (signsFor === 'validator') return unavailable(differs);
    return new ApiError(code, differs, { status, hint, details: { [SERVER_TIME]: theirMs } });
  }
  return new ApiError(code, message, { status, hint, ...(details ? { details } : {}) });
}
