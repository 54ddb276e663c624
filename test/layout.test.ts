/**
 * Checks the source tree: the rules of layout/rules.ts, the order of modules, and a README whose code map is correct.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { codeMapPaths } from './layout/code-map.ts';
import { readSource } from './layout/imports.ts';
import { ringIn, upwardIn } from './layout/order.ts';
import { RULES } from './layout/rules.ts';
import { bannedWordsIn } from './layout/words.ts';

const ROOT = join(import.meta.dirname, '..');

/** Modules of each side in the order of their imports: a module imports only modules below it. */
const ORDER: Record<string, readonly string[]> = {
  'agent/': [
    ...['main.ts', 'commands', 'serve.ts', 'agent-ports.ts', 'app.ts', 'listeners.ts'],
    ...[
      'adapters-from-config.ts',
      'config-files.ts',
      'doctor',
      'ssh-gateway',
      'updates',
      'verify',
      'metrics',
      'host',
    ],
    ...['backups', 'access', 'pods', 'logs', 'config.ts', 'containers', 'gpu', 'leases'],
    ...['identity', 'periodic-work.ts', 'database', 'import-without.ts'],
  ],
  'shared/': [
    ...['updates', 'check', 'api', 'signing', 'tls', 'http', 'telemetry'],
    ...['runtime', 'proof-of-work'],
  ],
  'validator/': [
    ...[
      'embedded',
      'simulate',
      'provider-cli',
      'console',
      'app.ts',
      'coverage',
      'central',
      'doctor',
      'gateway',
      'probes',
      'inspection',
      'metrics.ts',
      'records',
      'updates',
      'weights',
    ],
    ...['evidence', 'central-client.ts', 'keys', 'checks', 'store', 'config.ts', 'database'],
  ],
  // Accounts send mails and record events; everything else, delivery included, identifies callers by accounts/auth.
  'validator/central/': [
    ...[
      'doctor',
      'config.ts',
      'adapters-config.ts',
      'operator',
      'providers',
      'backups',
      'market',
      'money',
      'accounts',
      'delivery',
      'accounts/auth',
    ],
    'platform',
  ],
};

/** Folders whose subfolders must not import each other in a cycle. */
const MODULES_OF_FOLDERS = [
  'agent/containers/',
  'agent/access/',
  'validator/inspection/',
  ...['backups/', 'market/', 'money/', 'delivery/', 'accounts/', 'platform/'].map(
    (module) => `validator/central/${module}`,
  ),
];

describe('the layout', () => {
  const files = globSync('{agent,shared,validator,test}/**/*.{ts,tsx}', { cwd: ROOT }).map((path) =>
    readSource(path, readFileSync(join(ROOT, path), 'utf8')),
  );

  it('finds files to check', () => {
    expect(files.length).toBeGreaterThan(0);
  });

  for (const { name, check } of RULES) {
    it(name, () => {
      expect(files.flatMap(check)).toEqual([]);
    });
  }

  it.each(Object.entries(ORDER))(
    'imports in %s follow the required order of modules',
    (side, order) => {
      expect(upwardIn(side, order, files)).toEqual([]);
    },
  );

  it.each(MODULES_OF_FOLDERS)('folders in %s do not import each other in a cycle', (side) => {
    expect(ringIn(side, files)).toEqual([]);
  });

  it('has no banned words in comments', () => {
    const found = globSync('{agent,shared,validator,test}/**/*.{ts,tsx}', { cwd: ROOT })
      // The list of banned words itself.
      .filter((path) => path !== 'test/layout/words.ts')
      .flatMap((path) => bannedWordsIn(path, readFileSync(join(ROOT, path), 'utf8')));
    expect(found).toEqual([]);
  });

  it('resolves every import of a file in the repository', () => {
    const missing = files.flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target !== null && !existsSync(join(ROOT, target)))
        .map(({ line, specifier }) => `${path}:${line} imports ${specifier}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('the README', () => {
  it('has a code map whose paths exist', () => {
    const readme = join(ROOT, 'README.md');
    expect(existsSync(readme), 'README.md is missing').toBe(true);
    const paths = codeMapPaths(readFileSync(readme, 'utf8'));
    expect(paths, 'README.md has no section "## Code map"').not.toBeNull();
    expect(paths, 'the code map has no table with paths in backticks').not.toEqual([]);
    const gone = paths?.filter((path) => globSync(path, { cwd: ROOT }).length === 0);
    expect(gone, 'paths in the code map that do not exist').toEqual([]);
  });
});
