/** `npm run validator`'s program as a real process on a free port. */
import { type ChildProcess, spawn } from 'node:child_process';
import { COMPILE_CACHE } from '#shared/node-launch.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

const MAIN = new URL('../../validator/main.ts', import.meta.url).pathname;
const READY_WITHIN_MS = 30_000;

export type ValidatorProcess = {
  child: ChildProcess;
  /** What it has written so far. */
  output(): string;
  /** Sends the signal and resolves when it has ended. */
  end(signal?: NodeJS.Signals): Promise<void>;
};

/** Resolves once it serves; rejects with its output when it ends before. */
export async function startValidatorProcess(
  environment: Record<string, string>,
): Promise<ValidatorProcess> {
  const { first: port } = await freePorts(1);
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      VALIDATOR_PORT: String(port),
      VALIDATOR_ACCEPT_SIMULATED: 'true',
      ...environment,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  }
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await eventually(
    'validator ready',
    () => {
      if (child.exitCode !== null) throw new Error(`ended early:\n${output}`);
      return output.includes('validator ready');
    },
    READY_WITHIN_MS,
  );
  return {
    child,
    output: () => output,
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      await exited;
    },
  };
}
