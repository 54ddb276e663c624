/** `npm test`: checks types and lint, then runs the tests and restores the host afterwards, also after Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { VERSION } from '#shared/runtime/version.ts';
import {
  hostState,
  killProcesses,
  RUN_VARIABLE,
  removeHostChanges,
  removeObjects,
} from './leftovers.ts';

const HELP = `Checks types and lint, then runs the tests on the real Docker engine, and removes what they leave on this host.

  npm test                          all tests except long ones; the last line is "N passed, N failed"
  npm test -- PATH … [options]      the tests below these paths; options are those of vitest
  npm test -- --help | --version

npm run soak -- --only tests runs the long tests, which --project long --project long-postgres selects here.
Ctrl-C ends the run, removes what it has left, and prints "interrupted" last.
`;

const PACKAGES = join(import.meta.dirname, '../../node_modules');
const TYPES = [join(PACKAGES, 'typescript/bin/tsc'), '--noEmit'];
/** The console runs in browsers and has other types than the programs. */
const CONSOLE_TYPES = [...TYPES, '--project', 'validator/console'];
const LINT = [join(PACKAGES, '@biomejs/biome/bin/biome'), 'check', '--error-on-warnings'];
const TESTS = [join(PACKAGES, 'vitest/vitest.mjs'), 'run'];
/** Projects whose tests do not take minutes. `vitest.config.ts` defines the projects. */
const DEFAULT_PROJECTS = ['--project', 'main', '--project', 'postgres'];
const INTERRUPTED = 130;

/**
 * A step of the run: a child process in a separate session, so that only this process receives the signal of Ctrl-C.
 */
type Step = { child: ChildProcess; status: Promise<number> };

process.exitCode = await run(process.argv.slice(2));

async function run(words: readonly string[]): Promise<number> {
  if (words.includes('--help')) return print(HELP);
  if (words.includes('--version')) return print(`${VERSION}\n`);
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => interruption.abort());
  }
  const { signal } = interruption;
  const checks = [TYPES, CONSOLE_TYPES, LINT].map((program) => check(program, signal));
  const failed = (await Promise.all(checks)).find((status) => status !== 0);
  const status = failed || (await runTests(words, signal));
  if (!signal.aborted) return status;
  print('interrupted\n');
  return INTERRUPTED;
}

/** Runs a program that leaves nothing on the host. */
async function check(program: readonly string[], signal: AbortSignal): Promise<number> {
  if (signal.aborted) return INTERRUPTED;
  const { child, status } = start(program, {});
  signal.addEventListener('abort', () => killGroup(child));
  return status;
}

/**
 * The tests get a session and a temporary folder that end with the run. Anything left outside them fails a run that
 * otherwise passed.
 */
async function runTests(words: readonly string[], signal: AbortSignal): Promise<number> {
  if (signal.aborted) return INTERRUPTED;
  const before = hostState();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-test-'));
  // Programs that run as other users, such as PostgreSQL, create folders in it.
  chmodSync(folder, 0o1777);
  const id = basename(folder);
  const projects = words.includes('--project') ? [] : DEFAULT_PROJECTS;
  const { child, status: ended } = start([...TESTS, ...projects, ...words], {
    TMPDIR: folder,
    [RUN_VARIABLE]: id,
  });
  const tests = { id, folder, session: child.pid ?? -1 };
  signal.addEventListener('abort', () => killProcesses(tests));
  const status = await ended;

  const left = killProcesses(tests).map((command) => `process ${command}`);
  left.push(...removeObjects(tests, before), ...removeHostChanges(tests, before));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  if (left.length === 0 || signal.aborted) return status;
  process.stderr.write(
    `The tests did not remove the following; they are removed now:\n${left.join('\n')}\n`,
  );
  return status === 0 ? 1 : status;
}

/** Starts a program of a package. */
function start(program: readonly string[], environment: Record<string, string>): Step {
  const child = spawn(process.execPath, [...program], {
    stdio: 'inherit',
    detached: true,
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment },
  });
  const status = new Promise<number>((resolve) => {
    child.once('exit', (code) => resolve(code ?? 1));
  });
  return { child, status };
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // The step has ended in the meantime.
  }
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}
