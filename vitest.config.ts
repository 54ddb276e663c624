import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** Tests on a database of the central API or of the evidence store. They run a second time, on PostgreSQL. */
const databaseTests = globSync('{validator,test}/**/*.test.ts', {
  // These use a central API but do not test its database.
  exclude: [
    'test/contract/{cheats,line}.test.ts',
    'test/e2e/{prometheus,central-process,quick-start}.test.ts',
    'test/spec/{errors,documentation}.test.ts',
    'validator/central/platform/{openapi/viewer,system/start-page}.test.ts',
    'validator/central/delivery/streams/{pod-logs,log-sharing,resumable}.test.ts',
    'validator/central/{market/support-channels,market/feedback,delivery/uploads}/*.test.ts',
    'validator/updates/release.test.ts',
    'validator/central/{money/alpha/alpha,accounts/account/referral-payout,market/pods/pod-mails,money/top-ups/stripe}.test.ts',
  ],
}).filter((path) =>
  /(?:central-fixture|market-fixture|metering-scene|pod-scene|central-backup-scene|volume-scene|central-database|test-evidence-store|payout-scene)\.ts'/.test(
    readFileSync(path, 'utf8'),
  ),
);

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
    projects: [
      {
        extends: true,
        test: {
          name: 'main',
          include: ['{agent,validator,shared}/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.postgres.test.ts'],
          globalSetup: ['test/engine.setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          // After the other project: workers are reused only for files of the same project.
          sequence: { groupOrder: 1 },
          include: [...databaseTests],
          globalSetup: ['test/engine.setup.ts', 'test/postgres.setup.ts'],
        },
      },
    ],
  },
});
