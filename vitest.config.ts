import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{agent,validator,shared}/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/engine.setup.ts'],
    reporters: ['default', './test/plain-line.reporter.ts'],
    restoreMocks: true,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
