/** Prints the result of the run as its last line, in plain text, for callers that read only that line. */
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

type Counts = { passed: number; failed: number; skipped: number };

/**
 * Waits for the process to end, because the global teardown runs after the last event of a reporter and may fail the
 * run, too. Any non-zero exit status counts as a failure.
 */
export default class PlainLineReporter implements Reporter {
  private counts: Counts = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    process.once('exit', () => {
      const { passed, failed, skipped } = this.counts;
      if (passed + failed === 0) process.exitCode = 1;
      const failures = failed === 0 && process.exitCode ? 1 : failed;
      const tail = skipped === 0 ? '' : `, ${skipped} skipped`;
      process.stdout.write(`${passed} passed, ${failures} failed${tail}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    this.counts = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) add(this.counts, countModule(module));
  }
}

/** Counts a failed import or hook as a separate failure: vitest reports its tests as skipped. */
function countModule(module: TestModule): Counts {
  const groups = [module, ...module.children.allSuites()];
  const broken = groups.filter((group) => group.errors().length > 0);
  const counts: Counts = { passed: 0, failed: broken.length, skipped: 0 };
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state !== 'pending') counts[state] += 1;
  }
  return counts;
}

function add(sum: Counts, part: Counts): void {
  sum.passed += part.passed;
  sum.failed += part.failed;
  sum.skipped += part.skipped;
}
