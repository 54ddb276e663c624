/** Runs the shell commands of a README exactly as printed. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readDocument } from './generated.ts';

const ROOT = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 300_000;
/** Parts of the checkout that commands of a README use. */
const CHECKOUT = ['node_modules', 'package.json', 'shared', 'systemd', 'validator'];

/** Returns the first shell block below a heading. Throws if there is none. */
export function shellBlock(path: string, heading: string): string {
  const [, section = ''] = readDocument(path).split(`\n## ${heading}\n`);
  const block = /^```sh\n([\s\S]*?)^```$/m.exec(section.split('\n## ')[0] ?? '')?.[1];
  if (block === undefined) throw new Error(`${path} has no shell block below "${heading}"`);
  return block;
}

/**
 * Pastes the blocks into one shell, in a folder whose `var` is the marketplace's home, and returns the standard output.
 * The commands share the shell's standard input: a command that reads the standard input consumes the lines after it.
 */
export async function runSession(
  blocks: readonly string[],
  home: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-session-'));
  try {
    symlinkSync(home, join(folder, 'var'));
    for (const name of CHECKOUT) symlinkSync(join(ROOT, name), join(folder, name));
    const options = {
      cwd: folder,
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      env: environment,
    } as const;
    const running = promisify(execFile)('bash', ['-s'], options);
    running.child.stdin?.end(blocks.join('\n'));
    return (await running).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
