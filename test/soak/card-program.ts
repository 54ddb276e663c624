/** Compiles the proof program for cards and runs it on this machine, without containers. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createChallengeService } from '../../agent/verify/challenges/challenge.service.ts';
import { createDeviceChallenges } from '../../agent/verify/challenges/device-challenges.ts';
import { type ProofProgram, sessionOf } from '../../agent/verify/challenges/proof-program.ts';
import type { ChallengeDeps } from '../../validator/inspection/proof/challenge.ts';
import { PROOF_SOURCES } from '../fakes/agents/proof-binary.ts';

const ROOT = join(import.meta.dirname, '../..');
const COMPILER_IMAGE = 'nvidia/cuda:12.8.1-devel-ubuntu22.04';
const BOUNDS = { timeoutMs: 600_000, maxOutputBytes: 1_000_000 };
/** The agent's program, and the same restricted to a quarter of the card. */
const SOURCES = {
  proof: join(PROOF_SOURCES, 'device.cu'),
  quarter: join(import.meta.dirname, 'quarter.cu'),
};

export type CardProgram = Pick<ProofProgram, 'image' | 'hasCards' | 'start' | 'removeLeftovers'>;

/**
 * Compiles a program for the cards of this machine, with nvcc if it is installed, otherwise in NVIDIA's image. Returns its
 * path. Rejects with the compiler's messages.
 */
export async function compileForCards(name: keyof typeof SOURCES, folder: string): Promise<string> {
  const program = join(folder, name);
  const argv = ['-O3', '-std=c++17', '-arch=native', '-o', program, SOURCES[name]];
  const hasCompiler = await runCommand('nvcc', ['--version'], BOUNDS).catch(() => null);
  const inImage = [
    'run',
    '--rm',
    '--gpus',
    'all',
    '-v',
    `${ROOT}:${ROOT}:ro`,
    '-v',
    `${folder}:${folder}`,
  ];
  const { exitCode, stderr } =
    hasCompiler === null
      ? await runCommand('docker', [...inImage, COMPILER_IMAGE, 'nvcc', ...argv], BOUNDS)
      : await runCommand('nvcc', argv, BOUNDS);
  if (exitCode !== 0) throw new Error(stderr);
  return program;
}

/** A compiled program; each session is a process. */
export function cardProgram(path: string): CardProgram {
  return {
    image: async () => path,
    hasCards: true,
    async start(device) {
      const running = spawn(path, [device], { stdio: ['pipe', 'pipe', 'inherit'] });
      const ended = new Promise((resolve) => running.once('close', resolve));
      const { stdin: input, stdout } = running;
      // The program may end before it reads all its input.
      input.on('error', () => undefined);
      const close = () => void running.kill();
      return {
        done: sessionOf({ input, output: outputOf(stdout), close }, async () => void (await ended)),
      };
    },
    removeLeftovers: async () => undefined,
  };
}

async function* outputOf(stdout: AsyncIterable<Buffer>) {
  for await (const data of stdout) yield { stream: 'stdout' as const, data };
}

/** The agent's part of the challenges, without HTTP. Ends its programs when `stopping` aborts. */
export function challengesTo(
  program: CardProgram,
  executorId: string,
  stopping: AbortSignal,
): ChallengeDeps['client'] {
  const isRented = () => false;
  const refuse = () => Promise.reject(new Error('the processor is not challenged'));
  const service = createChallengeService({
    clock: systemClock,
    executorId,
    workers: 1,
    isRented,
    proof: { leaves: refuse, rows: refuse },
    devices: createDeviceChallenges({
      executorId,
      clock: systemClock,
      program,
      isRented,
      stopping,
    }),
  });
  return {
    challenge: (request) => service.commit(request, stopping),
    openChallenge: (id, request) => service.open(id, request, stopping),
  };
}
