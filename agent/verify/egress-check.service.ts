/**
 * Checks a registry by resolving a digest through the engine, as pulls of pods do. If the registry does not answer, tries
 * a plain connection to it.
 */
import { connect } from 'node:net';
import type { EgressCheckRequest, EgressCheckResult } from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import {
  type ContainerEngine,
  EngineError,
  type EngineErrorKind,
} from '../containers/engine/engine.ts';
import { isLocalRegistry, registryHostOf } from '../containers/images/image-name.ts';

/** Timeouts, whose sum is below the caller's timeout. */
const ANSWER_MS = 10_000;
const CONNECT_MS = 4_000;
const HTTPS_PORT = 443;
const DOCKER_HUB_HOST = 'registry-1.docker.io';
const MAX_PROBLEM_CHARS = 1_000;
/** Errors that show that the registry answered. */
const ANSWERS: readonly EngineErrorKind[] = [
  'image_auth',
  'image_not_found',
  'image_rate_limited',
  'image_digest_mismatch',
];
/** Errors of the engine, which are unrelated to the registry. */
const ENGINE_FAILED: readonly EngineErrorKind[] = ['unavailable', 'refused', 'conflict'];

/** Connects to the port. Rejects if no connection is accepted before `signal` aborts. */
export type TryConnection = (host: string, port: number, signal: AbortSignal) => Promise<void>;

export type EgressCheckService = ReturnType<typeof createEgressCheckService>;

export type EgressCheckOptions = {
  clock: Clock;
  executorId: string;
  engine: Pick<ContainerEngine, 'resolveDigest'>;
  tryConnection: TryConnection;
};

export function createEgressCheckService(options: EgressCheckOptions) {
  const { clock, executorId, engine } = options;
  let running: Promise<EgressCheckResult> | null = null;

  async function checkRegistry(image: string, host: string): Promise<EgressCheckResult> {
    try {
      await engine.resolveDigest(image, undefined, clock.deadline(ANSWER_MS));
      return { registry: 'answers', problem: '' };
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const problem = messageOf(error).slice(0, MAX_PROBLEM_CHARS);
      if (ANSWERS.includes(error.kind)) return { registry: 'answers', problem: '' };
      if (ENGINE_FAILED.includes(error.kind)) return { registry: 'unknown', problem };
      const reached = options.tryConnection(host, HTTPS_PORT, clock.deadline(CONNECT_MS));
      const isReached = await reached.then(
        () => true,
        () => false,
      );
      return { registry: isReached ? 'unreachable' : 'blocked', problem };
    }
  }

  return {
    /** Throws 400 for another executor and for registries at private addresses, 409 during another check. */
    async check({ executor_id, image }: EgressCheckRequest): Promise<EgressCheckResult> {
      if (executor_id !== executorId) {
        throw new ApiError('bad_request', 'The check is for another executor');
      }
      const named = registryHostOf(image);
      if (named !== null && isLocalRegistry(named)) {
        throw new ApiError('bad_request', 'The registry of the image has a private address');
      }
      if (running !== null) throw new ApiError('conflict', 'Another check is in progress');
      const host = named === null || named === 'docker.io' ? DOCKER_HUB_HOST : named;
      running = checkRegistry(image, host);
      try {
        return await running;
      } finally {
        running = null;
      }
    },
  };
}

export const tryConnection: TryConnection = (host, port, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
