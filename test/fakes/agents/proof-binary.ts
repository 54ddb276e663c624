/** Compiles C++ programs of the proof of work for the test's host. */
import { join } from 'node:path';
import { runCommand } from '#shared/runtime/run-command.ts';

const BOUNDS = { timeoutMs: 180_000, maxOutputBytes: 1_000_000 };
const OPTIONS = ['-O3', '-std=c++17', '-Wall', '-Wextra', '-Werror', '-static'];
export const PROOF_SOURCES = join(import.meta.dirname, '../../../agent/gpu-proof');

/** Returns the path of the program in `folder`. Rejects with the compiler's messages. */
export async function compileProof(
  folder: string,
  source = join(PROOF_SOURCES, 'host.cc'),
): Promise<string> {
  const program = join(folder, 'proof');
  const argv = [...OPTIONS, `-I${PROOF_SOURCES}`, source, '-o', program];
  const { exitCode, stderr } = await runCommand('g++', argv, BOUNDS);
  if (exitCode !== 0) throw new Error(stderr);
  return program;
}
