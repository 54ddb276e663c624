/** Tests of --help and --version: the same in a clone without packages, with any Node, as in a complete one. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocument } from './generated.ts';
import { HELP_FOLDERS, outputOf } from './help-texts.ts';

const ROOT = join(import.meta.dirname, '../..');
const { scripts, version } = JSON.parse(readDocument('package.json')) as {
  scripts: Record<string, string>;
  version: string;
};
const PROGRAM = /run\.sh (?:--setup(?:-tests)? )?(\S+)\/main\.ts$/;
/** Names of the scripts by the folder of their program. */
const SCRIPTS = new Map(
  Object.entries(scripts).flatMap(([name, line]) => {
    const folder = PROGRAM.exec(line)?.[1];
    return folder === undefined ? [] : [[folder, name] as const];
  }),
);

describe.each(HELP_FOLDERS)('%s', (folder) => {
  it('has a help.txt that equals its --help (otherwise run `npm run docs`)', async () => {
    expect(readDocument(`${folder}/help.txt`)).toBe(await outputOf(folder, '--help'));
  });

  it('prints the version of package.json', async () => {
    expect(await outputOf(folder, '--version')).toBe(`${version}\n`);
  });
});

describe('in a clone without packages', () => {
  const clone = mkdtempSync(join(tmpdir(), 'podwright-clone-'));

  beforeAll(() => {
    const texts = HELP_FOLDERS.map((folder) => `${folder}/help.txt`);
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

  it.each([...SCRIPTS].filter(([folder]) => HELP_FOLDERS.includes(folder)))(
    'the script of %s prints its help and version',
    (folder, script) => {
      expect(run(script, '--help')).toBe(readFileSync(join(clone, folder, 'help.txt'), 'utf8'));
      expect(run(script, '--version')).toBe(`${version}\n`);
    },
  );

  it('every folder with a help.txt has a script', () => {
    expect(HELP_FOLDERS.filter((folder) => !SCRIPTS.has(folder))).toEqual([]);
  });

  it('a script without set-up names the command that installs the packages', () => {
    expect(() => run('agent', '')).toThrow(
      'The npm packages are not installed. Run: npm run setup',
    );
  });
});
