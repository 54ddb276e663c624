/** The commit of the checkout that runs, by which a run can be repeated later. */
import { dirname } from 'node:path';
import { runCommand } from '#shared/runtime/run-command.ts';

const TIMEOUT_MS = 5_000;
const MAX_OUTPUT_BYTES = 10_000;
const SHOWN_DIGITS = 12;

/**
 * Resolves with the abbreviated commit of the checkout with this root, with `-dirty` after it if files differ from the
 * commit. Resolves with null if the folder is not a checkout, or if git is missing or fails. Never rejects. `path`: the
 * variable PATH, in which git is searched.
 */
export async function sourceCommit(root: string, path: string): Promise<string | null> {
  const shown = ['--always', '--dirty', '--exclude=*', `--abbrev=${SHOWN_DIGITS}`];
  const args = ['--no-optional-locks', '-C', root, 'describe', ...shown];
  const limits = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES };
  // An unpacked release may be in a folder of another checkout, whose commit would be wrong.
  const env = { PATH: path, GIT_CEILING_DIRECTORIES: dirname(root) };
  try {
    const { exitCode, stdout } = await runCommand('git', args, { ...limits, env });
    return exitCode === 0 ? stdout.trim() : null;
  } catch {
    return null;
  }
}
