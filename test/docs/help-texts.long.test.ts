/** Tests of --help and --version: the same in a clone without packages, with any Node, as in a complete one. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocument } from './generated.ts';
import { HELP_TEXTS, outputOf } from './help-texts.ts';

const ROOT = join(import.meta.dirname, '../..');
const { scripts, version } = JSON.parse(readDocument('package.json')) as {
  scripts: Record<string, string>;
  version: string;
};
const PROGRAM = /run\.sh (?:--setup(?:-tests)? )?(\S+\/main\.ts.*)$/;
/** Names of the scripts by their program. */
const SCRIPTS = new Map(
  Object.entries(scripts).flatMap(([name, line]) => {
    const program = PROGRAM.exec(line)?.[1];
    return program === undefined ? [] : [[program, name] as const];
  }),
);

describe.each(HELP_TEXTS)('$program', ({ program, path }) => {
  it('has a text that equals its --help (otherwise run `npm run docs`)', async () => {
    expect(readDocument(path)).toBe(await outputOf(program, '--help'));
  });
});

it.each(HELP_TEXTS.filter(({ program }) => !program.includes(' ')))(
  '$program prints the version of package.json',
  async ({ program }) => {
    expect(await outputOf(program, '--version')).toBe(`${version}\n`);
  },
);

describe('in a clone without packages', () => {
  const clone = mkdtempSync(join(tmpdir(), 'podwright-clone-'));

  beforeAll(() => {
    const texts = HELP_TEXTS.map(({ path }) => path);
    for (const file of ['package.json', 'systemd/run.sh', ...texts]) {
      mkdirSync(dirname(join(clone, file)), { recursive: true });
      cpSync(join(ROOT, file), join(clone, file));
    }
  });
  afterAll(() => rmSync(clone, { recursive: true }));

  /** Runs a script of package.json as npm does, without the packaged Node. */
  const run = (script: string, argument: string) =>
    execFileSync('sh', ['-c', `${scripts[script]} ${argument}`], {
      cwd: clone,
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin' },
      stdio: 'pipe',
    });

  it.each(HELP_TEXTS)('the script of $program prints its help and version', ({ program, path }) => {
    const script = SCRIPTS.get(program) ?? '';
    expect(run(script, '--help')).toBe(readFileSync(join(clone, path), 'utf8'));
    expect(run(script, '--version')).toBe(`${version}\n`);
  });

  it('every script of a program has a text', () => {
    expect([...SCRIPTS.keys()].toSorted()).toEqual(
      HELP_TEXTS.map(({ program }) => program).toSorted(),
    );
  });

  it('a script without set-up names the command that installs the packages', () => {
    expect(() => run('agent', '')).toThrow(
      'The npm packages are not installed. Run: npm run setup',
    );
  });
});
