/** Findings of the validator: cheats with the delay, and honest hosts that failed checks. Pure. */
import type { KnownHost } from './host-tally.ts';
import type { DetectedCheat, ExpectedDetection, Report } from './report.ts';
import { sum } from './statistics.ts';

const HOUR_MS = 3_600_000;

/** `expectedOf`: result of inspections of a host with this cheat, under the policies of the run. */
export function detectionOf(
  hosts: readonly KnownHost[],
  expectedOf: (cheat: string) => ExpectedDetection,
): Report['detection'] {
  const honest = hosts.filter(({ cheat }) => cheat === null);
  const cheats = Map.groupBy(
    hosts.filter(({ cheat }) => cheat !== null),
    ({ cheat }) => cheat ?? '',
  );
  return {
    cheats: [...cheats]
      .map(([cheat, group]) => ({ expected: expectedOf(cheat), ...detectedCheat(cheat, group) }))
      .sort((a, b) => (a.cheat < b.cheat ? -1 : 1)),
    honest: {
      hosts: honest.length,
      checks: sum(honest.map(({ checks }) => checks)),
      failed_in_fault: sum(honest.flatMap(({ faultReasons }) => [...faultReasons.values()])),
      failed_by_fault: totals(honest.map(({ faultReasons }) => faultReasons)),
      failed_in_service_fault: totals(honest.map(({ serviceReasons }) => serviceReasons)),
      failed_without_fault: totals(honest.map(({ reasons }) => reasons)),
    },
  };
}

function detectedCheat(
  cheat: string,
  group: readonly KnownHost[],
): Omit<DetectedCheat, 'expected'> {
  const found = group.flatMap(({ found: first, sinceMs }) =>
    first === null ? [] : [{ reason: first.reason, hours: (first.atMs - sinceMs) / HOUR_MS }],
  );
  return {
    cheat,
    hosts: group.length,
    found: found.length,
    missed_inspections: group
      .filter(({ found: first }) => first === null)
      .map((host) => host.checks),
    delays_hours: found.map(({ hours }) => hours).sort((a, b) => a - b),
    reasons: totals(found.map(({ reason }) => new Map([[reason, 1]]))),
  };
}

function totals(counts: readonly ReadonlyMap<string, number>[]): Record<string, number> {
  const all = new Map<string, number>();
  for (const [key, count] of counts.flatMap((each) => [...each])) {
    all.set(key, (all.get(key) ?? 0) + count);
  }
  return Object.fromEntries(all);
}
