/** `npm run interface -- REVISION`: compares the public interface of a revision with that of this checkout. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VERSION } from '#shared/runtime/version.ts';
import { readInterface, type Snapshot } from './snapshot.ts';

const HELP = `Compares the public interface of a revision with that of this checkout.

  npm run interface -- REVISION

It covers the OpenAPI documents (without descriptions), commands, --print-config, metric names, error codes,
environment variables, database schemas with their migrations, and the files in a home. Exits with 1 on a difference.
The revision runs with the packages that are installed here.
`;

const ROOT = join(import.meta.dirname, '../..');

process.exitCode = await run(process.argv.slice(2));

async function run([revision, ...rest]: readonly string[]): Promise<number> {
  if (revision === '--version') {
    print(`${VERSION}\n`);
    return 0;
  }
  if (revision === undefined || revision === '--help' || rest.length > 0) {
    print(HELP);
    return revision === '--help' ? 0 : 2;
  }
  const before = await readRevision(revision);
  const after = await readInterface(ROOT);
  const different = differences(before, after);
  for (const line of different) print(`${line}\n`);
  const total = Object.values(after).reduce((sum, part) => sum + part.length, 0);
  const surfaces = Object.keys(after).length;
  print(`${different.length} differences in ${surfaces} surfaces with ${total} lines\n`);
  return different.length === 0 ? 0 : 1;
}

/** Checks the revision out beside this checkout and removes it afterwards. */
async function readRevision(revision: string): Promise<Snapshot> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-revision-'));
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    git('worktree', 'add', '--detach', '--force', folder, revision);
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    return await readInterface(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    git('worktree', 'prune');
  }
}

/** Returns one line for each line that only one side contains. */
function differences(before: Snapshot, after: Snapshot): string[] {
  const surfaces = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return surfaces.flatMap((surface) => {
    const [old, now] = [new Set(before[surface]), new Set(after[surface])];
    return [
      ...[...old].filter((line) => !now.has(line)).map((line) => `- ${surface}: ${line}`),
      ...[...now].filter((line) => !old.has(line)).map((line) => `+ ${surface}: ${line}`),
    ];
  });
}

function print(text: string): void {
  process.stdout.write(text);
}
