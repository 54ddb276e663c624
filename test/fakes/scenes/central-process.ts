/** The program of `npm run central` as a real process on a free port. */
import type { ChildProcess } from 'node:child_process';
import { systemClock } from '#shared/runtime/clock.ts';
import { freePorts } from '../free-ports.ts';
import { startProgram } from './program-process.ts';

const ANSWER_WITHIN_MS = 30_000;

/** Nodes may be on this host, and rate limits are off, because tests poll until a condition is true. */
export const CENTRAL_TEST_SETTINGS = {
  CENTRAL_VERIFY_EMAIL: 'false',
  CENTRAL_NODE_PLACES: 'private',
  CENTRAL_RATE_LIMIT_ADDRESS: '10000000',
  CENTRAL_RATE_LIMIT_CREDENTIAL: '10000000',
  CENTRAL_RATE_LIMIT_URGENT: '10000000',
  CENTRAL_RATE_LIMIT_LOGIN: '10000000',
  CENTRAL_RATE_LIMIT_SEARCH: '10000000',
};

export type CentralAnswer = { status: number; headers: Headers; body: Record<string, unknown> };

export type CentralProcess = {
  child: ChildProcess;
  /** Scheme, host and port. */
  origin: string;
  /** Calls a path below /api. Rejects when the process does not respond. */
  call(
    method: string,
    path: string,
    sent?: { headers?: Record<string, string>; body?: unknown },
  ): Promise<CentralAnswer>;
  /** Output so far. */
  output(): string;
  /** Sends the signal and resolves with the exit code; null if the signal killed the process. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
};

/** Resolves once the process serves; rejects with its output when it exits before that. */
export async function startCentralProcess(
  environment: Record<string, string>,
): Promise<CentralProcess> {
  const { first: port } = await freePorts(1);
  const { child, output, end } = await startProgram(
    'validator/central/main.ts',
    'central API ready',
    {
      CENTRAL_PORT: String(port),
      ...CENTRAL_TEST_SETTINGS,
      ...environment,
    },
  );
  const origin = `http://127.0.0.1:${port}`;
  return {
    child,
    origin,
    async call(method, path, { headers = {}, body } = {}) {
      const response = await fetch(`${origin}/api${path}`, {
        method,
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: systemClock.deadline(ANSWER_WITHIN_MS),
      });
      const answer = (await response.json()) as Record<string, unknown>;
      return { status: response.status, headers: response.headers, body: answer };
    },
    output,
    end,
  };
}
