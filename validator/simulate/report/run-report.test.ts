/** Tests a small simulation with its report, from the events to the page. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { busyScenario } from '../../../test/fakes/scenes/small-simulation.ts';
import { DEFAULT_POLICY_FILE, readAnyWeightPolicy } from '../../weights/weight-policy.ts';
import { compareReports, runsOf } from '../compare/comparison.ts';
import { comparisonHtml } from '../compare/comparison-html.ts';
import { describeObjects } from '../story/objects.ts';
import { describePod } from '../story/pod-records.ts';
import { createStoryTeller } from '../story/pod-story.ts';
import { readReport } from './report.ts';
import { runWithReport } from './run-report.ts';
import { sum } from './statistics.ts';
import { REPORT_FILE, writeReport } from './write-report.ts';

const folder = mkdtempSync(join(tmpdir(), 'report-'));
afterAll(() => rmSync(folder, { recursive: true }));

const story = createStoryTeller('renter-1');
const objects: string[] = [];
const records: string[] = [];
const { report } = await runWithReport({
  scenario: { ...busyScenario(), description: 'A <busy> market & "small"' },
  weightPolicy: readAnyWeightPolicy(DEFAULT_POLICY_FILE),
  policyName: 'policy-of-the-test',
  seed: 7,
  providers: 3,
  renters: 3,
  days: 1,
  database: ':memory:',
  observe: story.record,
  async inspect(world) {
    objects.push(...(await describeObjects(world)));
    for (const pod of story.pods()) records.push(...(await describePod(world.db, pod)));
  },
});
writeReport(folder, report);
const html = readFileSync(join(folder, 'report.html'), 'utf8');

describe('report of a simulation', () => {
  it('is read as it was written', () => {
    expect(readReport(join(folder, REPORT_FILE))).toEqual(report);
  });

  it('accounts for every request and every rental', () => {
    const { requested, accepted, refusals, ...rest } = report.rentals;
    const last = report.days.at(-1);
    expect(accepted).toBeGreaterThan(5);
    expect(accepted + sum(Object.values(refusals))).toBe(requested);
    const failed = sum(Object.values(rest.failed_starts));
    expect(rest.start_seconds.length).toBeLessThanOrEqual(accepted - failed);
    expect(rest.completed + rest.interruptions.length).toBeLessThanOrEqual(accepted - failed);
    expect(last?.rented).toBe(accepted);
    expect(report.detection.honest.checks).toBeGreaterThanOrEqual(3);
  });

  it('has a sample of the market for each hour, and money that balances', () => {
    expect(new Set(report.market.map(({ at_hours: at }) => at)).size).toBe(24);
    expect(report.market.every((at) => at.rented_gpus <= at.gpus)).toBe(true);
    for (const { balances_usd: balances } of report.ledger) {
      expect(sum(Object.values(balances))).toBeCloseTo(0, 6);
    }
    const provider = report.ledger.at(-1)?.balances_usd['provider'] ?? 0;
    expect(sum(report.incomes_usd)).toBeCloseTo(provider, 4);
    expect(report.spend.length).toBeGreaterThan(0);
  });
});

describe('figures of a run', () => {
  it('cover one period, which ends with the last day', () => {
    const { run, regions, requests, ledger, rentals } = report;
    expect([run.hours, run.period_hours]).toEqual([30, 24]);
    expect(ledger.at(-1)?.at_hours).toBe(24);
    expect(sum(regions.map(({ accepted }) => accepted))).toBe(rentals.accepted);
    expect(sum(regions.map((each) => each.interruptions))).toBe(rentals.interruptions.length);
    expect(sum(requests.map(({ requested }) => requested))).toBe(rentals.requested);
  });

  it('have each fault, with effects that add up to no more than the run has', () => {
    const { faults, rentals, detection } = report;
    expect(faults.length).toBeGreaterThan(3);
    expect(faults.every(({ to_hours: to }) => to === null || to <= 24)).toBe(true);
    const interrupted = sum(faults.map(({ interruptions }) => interruptions));
    expect(interrupted).toBeLessThanOrEqual(rentals.interruptions.length);
    expect(sum(faults.map(({ pods }) => pods))).toBeGreaterThan(0);
    for (const each of faults) {
      const lost = each.provider_loss_usd + each.platform_loss_usd;
      expect(lost).toBeCloseTo(each.uncharged_usd + each.refunds_usd, 6);
    }
    const { failed_in_fault: failed, failed_by_fault: byFault } = detection.honest;
    expect(sum(Object.values(byFault))).toBe(failed);
  });

  it('account for the worth of all weight', () => {
    const { emission, run, scenario, weights } = report;
    expect(emission.hours + emission.hours_before).toBeCloseTo(run.period_hours, 6);
    const worth = scenario.weights_worth_usd_per_hour;
    expect(emission.emitted_usd).toBeCloseTo(emission.hours * worth, 6);
    const rewards = sum(weights.map(({ reward_usd: reward }) => reward));
    expect(emission.rewards_usd).toBeCloseTo(rewards, 6);
    expect(rewards + emission.burned_usd).toBeCloseTo(emission.emitted_usd, 6);
    const { epochs } = emission;
    expect(sum(epochs.map(({ hours }) => hours))).toBeCloseTo(emission.hours, 6);
    for (const { rented_pool: rented, idle_pool: idle } of epochs) {
      expect(rented.share).toBeLessThanOrEqual(report.weight_policy.rented_share);
      expect(idle.share).toBeLessThanOrEqual(report.weight_policy.idle_share);
      expect(idle.share > 0).toBe(idle.hosts > 0);
    }
  });

  it('name the host of a fault, what detects each cheat, and the bounds of prices', () => {
    const ofHosts = report.faults.filter(({ hosts }) => hosts === 1);
    expect(ofHosts.length).toBeGreaterThan(0);
    for (const { host, host_region: region } of ofHosts) {
      expect(host).toMatch(/^provider-\d+$/);
      expect(report.scenario.supply.regions).toContain(region);
    }
    for (const { hosts, found, missed_inspections: missed } of report.detection.cheats) {
      expect(missed).toHaveLength(hosts - found);
    }
    expect(sum(report.prices.strategies.map(({ hosts }) => hosts))).toBe(report.run.providers);
    for (const sample of report.market) {
      expect(sample.asked_usd).toBeGreaterThan(0);
      expect(sample.free_gpus + sample.rented_gpus).toBeLessThanOrEqual(sample.gpus);
      expect(sample.stranded_gpus).toBeLessThanOrEqual(sample.free_gpus);
    }
  });
});

describe('page of a report', () => {
  it('names scenario, weight policy, seed and size in its title', () => {
    const title =
      'Simulation of scenario default with weight policy policy-of-the-test, seed 7: 1 day, 3 providers, 3 renters';
    expect(html).toContain(`<title>${title}</title>`);
    expect(html).toContain(`<h1>${title}</h1>`);
  });

  it('loads nothing and needs no script', () => {
    expect(html).not.toMatch(/<script|<link|<img|src=|url\(|https?:/);
    expect(html).toContain('prefers-color-scheme:dark');
  });

  it('has a finding, a table and a description for each plot', () => {
    const sections = html.match(/<section id="[a-z-]+"><h2>[^<]+<\/h2>/g) ?? [];
    expect(sections.length).toBeGreaterThanOrEqual(12);
    expect(html.match(/<svg aria-label="[^"]+" viewBox/g)?.length).toBeGreaterThan(5);
    expect(html.match(/<table>/g)?.length).toBeGreaterThanOrEqual(12);
    expect(html).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('escapes text of scenarios', () => {
    expect(html).toContain('A &lt;busy&gt; market &amp; &quot;small&quot;');
  });
});

describe('story of the run', () => {
  it('has the events, leases and charges of the pods of a renter', () => {
    expect(story.lines().some((line) => line.includes('rented'))).toBe(true);
    expect(story.lines().some((line) => line.includes('agent-put'))).toBe(true);
    expect(records.some((line) => /settlement \d+ to .*: \$\d/.test(line))).toBe(true);
    expect(records.some((line) => line.includes('charged $'))).toBe(true);
  });

  it('lists nodes, pods and accounts', () => {
    expect(objects).toContainEqual(expect.stringMatching(/^3 nodes: /));
    expect(objects).toContainEqual(expect.stringMatching(/^\d+ pods: /));
    expect(objects).toContainEqual(expect.stringMatching(/^ {2}platform:fee \$/));
  });
});

describe('comparison', () => {
  it('of a run with itself differs in nothing', () => {
    const pair = { a: report, b: report };
    const rows = compareReports([pair, pair]);
    expect(rows.every(({ difference }) => (difference?.mean ?? 0) === 0)).toBe(true);
    const page = comparisonHtml({
      a: { name: 'one', path: 'one.json' },
      b: { name: 'two', path: 'two.json' },
      runs: runsOf(pair),
      seeds: [1, 2],
      rows,
    });
    expect(page).toContain('weight policy policy-of-the-test on both sides');
    expect(page).toContain('No figure differs clearly');
    expect(page).toContain('<summary>Values of each seed</summary>');
    expect(page).not.toMatch(/NaN|undefined|Infinity|<script/);
  });
});
