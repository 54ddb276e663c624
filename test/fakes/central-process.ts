/** `npm run central`'s program as a real process on a free port. */
import { type ChildProcess, spawn } from 'node:child_process';
import { systemClock } from '#shared/clock.ts';
import { COMPILE_CACHE } from '#shared/node-launch.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

const MAIN = new URL('../../validator/central/main.ts', import.meta.url).pathname;
const READY_WITHIN_MS = 30_000;
const ANSWER_WITHIN_MS = 30_000;

/** Tests ask again and again until something has become true. */
const NO_LIMITS = {
  CENTRAL_RATE_LIMIT_ADDRESS: '10000000',
  CENTRAL_RATE_LIMIT_CREDENTIAL: '10000000',
  CENTRAL_RATE_LIMIT_LOGIN: '10000000',
  CENTRAL_RATE_LIMIT_SEARCH: '10000000',
};

export type CentralAnswer = { status: number; headers: Headers; body: Record<string, unknown> };

export type CentralProcess = {
  child: ChildProcess;
  /** Scheme, host and port. */
  origin: string;
  /** Below /api. Rejects when the process does not answer. */
  call(
    method: string,
    path: string,
    sent?: { headers?: Record<string, string>; body?: unknown },
  ): Promise<CentralAnswer>;
  /** Sends the signal and resolves with the exit code; null after one that kills. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
};

/** Resolves once it serves; rejects with its output when it ends before. */
export async function startCentralProcess(
  environment: Record<string, string>,
): Promise<CentralProcess> {
  const { first: port } = await freePorts(1);
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      CENTRAL_PORT: String(port),
      CENTRAL_VERIFY_EMAIL: 'false',
      ...NO_LIMITS,
      ...environment,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await eventually(
    'central API ready',
    () => {
      if (child.exitCode !== null) throw new Error(`ended early:\n${output}`);
      return output.includes('central API ready');
    },
    READY_WITHIN_MS,
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
    async end(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return exited;
    },
  };
}
