/** Layout rules by name: which imports are permitted, and names that may be used in one place only. */
import { type Import, lineAt, type SourceFile } from './imports.ts';

export type Rule = {
  name: string;
  /** Returns each violation in this file as `path:line text`; empty if there is none. */
  check(file: SourceFile): string[];
};

/** Modules of the central database that services may use directly. */
const MEANT_FOR_SERVICES = ['validator/central/platform/database/transactions.ts'];

/** Modules that withdraw money from accounts: the ledger itself, and those that require a settled account. */
const TAKES_MONEY =
  /^validator\/central\/(?:money\/ledger\/|money\/metering\/settlement\.service\.ts$|market\/pods\/pod-hold\.ts$)/;

/** Files with intentional module state, which is the same for every test or set by each test. */
const KEEPS_STATE = [
  'shared/signing/hotkey.ts',
  'shared/telemetry/tracing.ts',
  'test/bench/http-load.ts',
  'test/e2e/marketplace-scene.ts',
  'test/fakes/scenes/central-database.ts',
  'validator/central/platform/database/prepared.ts',
];

export const RULES: readonly Rule[] = [
  forbidImports('shared imports neither agent nor validator', (path, { target }) =>
    path.startsWith('shared/') ? isUnder(target, 'agent/', 'validator/') : false,
  ),
  forbidImports('agent and validator never import each other', (path, { target }) =>
    path.startsWith('agent/')
      ? isUnder(target, 'validator/')
      : path.startsWith('validator/') && isUnder(target, 'agent/'),
  ),
  forbidImports(
    'only validator/main.ts, embedded and simulate compose the central API',
    (path, { target }) =>
      isUnder(target, 'validator/central/') &&
      !isUnder(
        path,
        'validator/central/',
        'validator/embedded/',
        'validator/simulate/',
        'validator/main.ts',
      ) &&
      // The provider's command line is a client: it shares the schemas of the portal.
      !(isUnder(path, 'validator/provider-cli/') && hasRole(target, 'schemas')) &&
      !isTest(path),
  ),
  forbidImports(
    'the console imports nothing outside its folder, and only tests import it',
    (path, { target, package: name }) =>
      isUnder(path, 'validator/console/')
        ? !isTest(path) &&
          ((target !== null && !isUnder(target, 'validator/console/')) ||
            (name?.startsWith('node:') === true && !isUnder(path, 'validator/console/build/')))
        : isUnder(target, 'validator/console/') && !isTest(path),
  ),
  forbidImports(
    'routes never import stores',
    (path, { target }) => path.endsWith('.routes.ts') && hasRole(target, 'store'),
  ),
  forbidImports(
    'a central concept imports only the service, schemas and states of another',
    (path, { target }) =>
      !isTest(path) &&
      conceptOf(path) !== null &&
      conceptOf(target) !== null &&
      conceptOf(path) !== conceptOf(target) &&
      hasRole(target, 'store', 'routes', 'job'),
  ),
  forbidImports(
    'services import types, row locks and transactions from the central database, nothing else',
    (path, { target, typeOnly }) =>
      path.endsWith('.service.ts') &&
      isUnder(target, 'validator/central/platform/database/') &&
      !MEANT_FOR_SERVICES.some((meant) => meant === target) &&
      !typeOnly,
  ),

  home('dockerode', (path) => isUnder(path, 'agent/containers/engine/')),
  home(
    'node:sqlite',
    // The snapshot opens databases of any revision, without the product's code.
    (path) => path === 'shared/runtime/sqlite.ts' || path === 'test/interface/snapshot.ts',
  ),
  home(
    'kysely',
    (path) =>
      isUnder(
        path,
        'validator/database/',
        'validator/central/platform/database/',
        'validator/store/',
      ) ||
      path === 'test/fakes/scenes/central-database.ts' ||
      /\.store(?:\.long)?(?:\.test)?\.ts$/.test(path),
  ),
  home(
    'pg',
    (path) =>
      isUnder(path, 'validator/database/', 'validator/central/platform/database/') || isTest(path),
  ),
  home('systeminformation', (path) => isUnder(path, 'agent/host/')),
  home(
    'node:child_process',
    (path) =>
      isUnder(path, 'agent/gpu/', 'agent/host/') ||
      path === 'agent/backups/bounded-child.ts' ||
      path === 'shared/runtime/supervised-child.ts' ||
      path === 'shared/runtime/run-command.ts' ||
      isTest(path),
  ),
  home('@polkadot/*', (path) => isUnder(path, 'validator/') || isTest(path)),
  home(
    'ssh2',
    (path) =>
      isUnder(path, 'agent/ssh-gateway/', 'validator/inspection/rental-probe/') || isTest(path),
  ),
  home('fast-xml-parser', (path) => isUnder(path, 'agent/gpu/')),
  home('pino', (path) => path === 'shared/runtime/log.ts'),
  home(
    'tar-stream',
    (path) =>
      isUnder(path, 'agent/containers/images/', 'agent/updates/', 'shared/check/archive/') ||
      isTest(path),
  ),
  home('vite', (path) => path === 'validator/console/build/build.ts'),
  home('react', (path) => isUnder(path, 'validator/console/') && path.endsWith('.tsx')),
  home('playwright-core', (path) => isTest(path)),
  home('node:timers', (path) => path === 'shared/runtime/clock.ts' || isTest(path)),

  forbidCode(
    'the environment is read in main.ts only',
    /\bprocess\.env\b|\benv\b[^;=]*\}\s*=\s*process\b/g,
    (path) => !isTest(path) && !/(?:^|\/)main\.ts$/.test(path),
  ),
  forbidCode(
    'time comes from the Clock',
    /\bDate\.now\b|\bnew Date\b|\bperformance\.now\b|\bprocess\.hrtime\b|\bAbortSignal\.timeout\b|(?:(?<!\.)|\bglobalThis\.)\bset(?:Timeout|Interval)\b/g,
    (path) =>
      !isTest(path) &&
      path !== 'shared/runtime/clock.ts' &&
      path !== 'validator/console/browser/clock.ts',
  ),
  forbidCode(
    'randomness comes from Random',
    /\bMath\.random\b|\brandom(?:UUID|Bytes|Int|FillSync)\b|\bgetRandomValues\b/g,
    (path) =>
      !isTest(path) &&
      path !== 'shared/runtime/random.ts' &&
      path !== 'validator/console/browser/random.ts',
  ),

  forbidCode(
    'accounts are settled before money leaves them',
    /\bdebit:\s*(?:paid|granted)Account\b|\bplaceHold\s*\(/g,
    (path) => isUnder(path, 'validator/') && !isTest(path) && !TAKES_MONEY.test(path),
  ),

  forbidPath('barrel files are forbidden', /(?:^|\/)index\.ts$/),
  forbidPath('no folder has a catch-all name', /(?:^|\/)(?:utils?|helpers?|lib|common)\//),
  forbidCode(
    'exports have names',
    /\bexport\s+default\b|\bas\s+default\b/g,
    (path) => !path.endsWith('.config.ts') && path !== 'test/plain-line.reporter.ts',
  ),
  forbidCode(
    'no test is skipped, focused or left for later',
    /\b(?:it|test|describe|suite)(?:\.\w+)*\.(?:skip|only|todo)\b/g,
  ),
  forbidCode(
    'modules have no state: test files share loaded modules',
    /^(?:export )?(?:let |const \w+(?:: [^=]+)? = new (?:Weak)?(?:Map|Set)(?:<[^;]*>)?\(\))/gm,
    (path) => !path.endsWith('.test.ts') && !KEEPS_STATE.includes(path),
  ),
  // `{ ...{ a, b }, c }` equals `{ a, b, c }`.
  forbidCode('no fresh literal is spread', /\.\.\.\{/g),
  forbidCode('no module is mocked', /\bvi\.(?:mock|doMock)\s*\(/g),
  forbidCode('no check is silenced by a cast', /\bas\s+any\b/g),
  {
    name: 'no check is silenced by a comment',
    check: (file) =>
      matches(file, file.comments, /biome-ignore|@ts-(?:ignore|expect-error|nocheck)/g),
  },
];

function forbidImports(name: string, breaks: (path: string, found: Import) => boolean): Rule {
  return {
    name,
    check: ({ path, imports }) =>
      imports
        .filter((found) => breaks(path, found))
        .map(({ line, specifier }) => `${path}:${line} imports ${specifier}`),
  };
}

/** `name` is a package, a Node module, or a whole scope as `@scope/*`. */
function home(name: string, isHome: (path: string) => boolean): Rule {
  return forbidImports(`${name} is imported in one place`, (path, found) => {
    const isMeant = name.endsWith('/*')
      ? found.package?.startsWith(name.slice(0, -1))
      : found.package === name;
    return isMeant === true && !isHome(path);
  });
}

function forbidCode(name: string, pattern: RegExp, applies = (_path: string) => true): Rule {
  return {
    name,
    check: (file) => (applies(file.path) ? matches(file, file.code, pattern) : []),
  };
}

function forbidPath(name: string, pattern: RegExp): Rule {
  return { name, check: ({ path }) => (pattern.test(path) ? [path] : []) };
}

function matches({ path }: SourceFile, text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(
    (match) => `${path}:${lineAt(text, match.index)} ${match[0]}`,
  );
}

function isUnder(path: string | null, ...folders: string[]): boolean {
  return path !== null && folders.some((folder) => path.startsWith(folder));
}

function isTest(path: string): boolean {
  return path.startsWith('test/') || path.endsWith('.test.ts');
}

function hasRole(path: string | null, ...roles: string[]): boolean {
  return path !== null && roles.some((role) => path.endsWith(`.${role}.ts`));
}

/** The concept folder of the central API that contains a file; null for the composition file of a module. */
function conceptOf(path: string | null): string | null {
  return /^validator\/central\/(\w+\/[\w-]+)\//.exec(path ?? '')?.[1] ?? null;
}
