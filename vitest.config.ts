import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** Tests on a database of the central API or of the evidence store. */
const databaseTests = globSync('{validator,test}/**/*.test.ts', {
  // These use a central API but do not test its database.
  exclude: [
    'test/contract/{cheats.long,line,fleet.long}.test.ts',
    'test/e2e/{prometheus.long,central-process.long,quick-start.long}.test.ts',
    'test/spec/{errors,documentation}.test.ts',
    'validator/central/platform/{openapi/viewer,system/start-page}.test.ts',
    'validator/central/delivery/streams/{pod-logs,log-sharing.long,resumable}.test.ts',
    'validator/central/{market/support-channels,market/feedback,delivery/uploads}/*.test.ts',
    'validator/updates/release.test.ts',
    'validator/central/{money/alpha/alpha,accounts/account/referral-payout,market/pods/pod-mails,money/top-ups/stripe}.test.ts',
  ],
}).filter((path) =>
  /(?:central-fixture|market-fixture|metering-scene|pod-scene|central-backup-scene|volume-scene|two-markets|central-database|test-evidence-store|payout-scene)\.ts'/.test(
    readFileSync(path, 'utf8'),
  ),
);

/**
 * Database tests that `npm test` repeats on PostgreSQL: those of stores and services, of every route and of concurrent
 * requests. `npm run soak -- --only tests` repeats all others.
 */
const postgresTests = databaseTests.filter((path) =>
  /\.(?:store|service|postgres)\.test\.ts$|^test\/spec\/routes\.test\.ts$|\/platform\/database\/|\/(?:idempotency|transfer)\.test\.ts$/.test(
    path,
  ),
);

/** Long tests run for minutes on a busy computer. */
const LONG_TIMEOUT_MS = 600_000;
const ENGINE = 'test/engine.setup.ts';
const POSTGRES = 'test/postgres.setup.ts';

export default defineConfig({
  test: {
    reporters: ['default', './test/plain-line.reporter.ts'],
    restoreMocks: true,
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // The default of one second is too short on a busy computer.
    expect: { poll: { timeout: 45_000 } },
    // More than there are cores: tests on a real engine spend most of their time waiting for it.
    maxWorkers: 4,
    // Modules are loaded once per worker, not once per file, which saves two thirds of the time of small
    // tests. It is safe because no module has state that one test could leave to another.
    isolate: false,
    // A project runs after those with a lower number: workers are reused only for files of the same project.
    projects: [
      project('main', 0, {
        include: ['{agent,validator,shared,test}/**/*.test.ts'],
        exclude: ['**/*.{postgres,long,postgres.long}.test.ts'],
        globalSetup: [ENGINE],
      }),
      project('postgres', 1, { include: postgresTests, globalSetup: [ENGINE, POSTGRES] }),
      project('long', 2, {
        include: ['{agent,validator,test}/**/*.long.test.ts'],
        exclude: ['**/*.postgres.long.test.ts'],
        globalSetup: [ENGINE],
        testTimeout: LONG_TIMEOUT_MS,
      }),
      project('long-postgres', 3, {
        include: databaseTests.filter((path) => !postgresTests.includes(path)),
        globalSetup: [ENGINE, POSTGRES],
        testTimeout: LONG_TIMEOUT_MS,
      }),
    ],
  },
});

type ProjectOptions = {
  include: string[];
  exclude?: string[];
  globalSetup: string[];
  testTimeout?: number;
};

function project(name: string, groupOrder: number, options: ProjectOptions) {
  return { extends: true as const, test: { name, sequence: { groupOrder }, ...options } };
}
