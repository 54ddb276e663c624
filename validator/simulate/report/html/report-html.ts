/** `report.html`: the results of a simulation, for readers who have seen neither its code nor its files. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import { detectionSections } from './detection-sections.ts';
import { faultSections } from './fault-sections.ts';
import { ledgerSection } from './ledger-section.ts';
import { marketSections, marketSize } from './market-sections.ts';
import { pageHtml } from './page.ts';
import { providerSections } from './provider-sections.ts';
import { rentalSections } from './rental-sections.ts';
import { rewardSection } from './reward-section.ts';
import { isEmpty, type Section, sectionHtml, tableHtml } from './section.ts';
import { selfRentalSection } from './self-rental-section.ts';
import { counted, duration, escapeHtml, usd, whole } from './text.ts';

const HOUR_S = 3_600;

export function reportHtml(report: Report): string {
  const all = [
    ...faultSections(report),
    ...marketSections(report),
    ...rentalSections(report),
    ...providerSections(report),
    rewardSection(report),
    selfRentalSection(report),
    ...detectionSections(report),
    ledgerSection(report),
  ];
  const [empty, sections] = [all.filter(isEmpty), all.filter((section) => !isEmpty(section))];
  const title = titleOf(report);
  return pageHtml(
    title,
    [
      `<h1>${escapeHtml(title)}</h1>`,
      `<p>${escapeHtml(report.scenario.description)}</p>`,
      outcome(report),
      `<p>${escapeHtml(periodOf(report))}</p>`,
      summary(report),
      contents(sections),
      ...sections.map(sectionHtml),
      absent(empty),
      differences(report),
      input(report),
    ].join('\n'),
  );
}

const titleOf = ({ scenario, run, weight_policy: policy }: Report): string =>
  `Simulation of scenario ${scenario.name} with weight policy ${policy.name}, seed ${run.seed}: ${counted(run.days, 'day')}, ${counted(run.providers, 'provider')}, ${counted(run.renters, 'renter')}`;

function periodOf({ run }: Report): string {
  const rest = run.hours - run.period_hours;
  const period = `All figures cover the first ${duration(run.period_hours * HOUR_S)} of the market.`;
  return rest <= 0
    ? period
    : `${period} Faults and new rentals ended then, and the market had another ${duration(rest * HOUR_S)} to come to rest, of which only the invariants were checked.`;
}

function outcome({ run }: Report): string {
  if (run.violation !== null) {
    const { invariant, what, trace } = run.violation;
    return `<p><strong class="failed">FAILED</strong> ${escapeHtml(`${invariant}: ${what}`)}</p>
<details><summary>Events of the objects concerned</summary><pre>${escapeHtml(trace.join('\n'))}</pre></details>`;
  }
  const text = run.stopped ? 'Stopped at --until, before its end' : 'No invariant was violated';
  return `<p><strong class="passed">${run.stopped ? 'STOPPED' : 'PASSED'}</strong> ${text}.</p>`;
}

function summary(report: Report): string {
  const { run, rentals, days, emission, faults } = report;
  const last = days.at(-1);
  const failed = sum(Object.values(rentals.failed_starts));
  const rows = [
    ['Market', `${marketSize(report)}, ${counted(run.renters, 'renter')}`],
    [
      'Rentals',
      `${whole(rentals.requested)} requested, ${whole(rentals.accepted)} accepted, ${whole(failed)} failed to start`,
    ],
    ['Interrupted pods', whole(rentals.interruptions.length)],
    ['Faults', whole(faults.length)],
    ['Inspections by the validator', whole(last?.checks ?? 0)],
    ['Postings in the ledger', whole(last?.postings ?? 0)],
    ['Charged to renters', usd(last?.charged_usd ?? 0)],
    ['Rewards of hosts by weight', rewardText(emission)],
  ];
  return tableHtml({ head: ['Figure', 'Value'], rows });
}

const rewardText = ({ emitted_usd: emitted, ...each }: Report['emission']): string =>
  emitted === 0
    ? 'none: no weights were set'
    : `${usd(each.rewards_usd)} of ${usd(emitted)}; the other ${usd(each.burned_usd)} were burned`;

const contents = (sections: readonly Section[]): string =>
  `<nav aria-label="Contents"><ul>${sections
    .map(({ id, finding }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(finding)}</a></li>`)
    .join('')}<li><a href="#settings">Settings that differ from production</a></li></ul></nav>`;

/** Sections without a value are one sentence each. */
const absent = (sections: readonly Section[]): string =>
  sections.length === 0
    ? ''
    : `<section id="absent"><h2>What this run did not have</h2><p>${sections
        .map(({ finding }) => `${escapeHtml(finding)}.`)
        .join(' ')}</p></section>`;

function differences(report: Report): string {
  const rows = report.differences.map(({ setting, simulation, production }) => [
    setting,
    simulation,
    production,
  ]);
  return `<section id="settings"><h2>Settings that differ from production</h2>
<p>The real services ran, with these settings. Times in this report are as exact as these intervals.</p>
${tableHtml({ head: ['Setting', 'Simulation', 'Production'], rows })}</section>`;
}

function input({ scenario, run, program, weight_policy: policy }: Report): string {
  const text = JSON.stringify(scenario, null, 2);
  return `<section id="input"><h2>Input</h2>
<p>Version ${escapeHtml(program)}, seed ${run.seed}, ${counted(run.providers, 'provider')}, ${counted(run.renters, 'renter')}, ${counted(run.days, 'day')}, weight policy ${escapeHtml(policy.name)} (SHA-256 ${escapeHtml(run.policy)}). With its rest, the run had ${counted(run.events, 'event')} and the hash ${escapeHtml(run.hash)}: equal options give the same hash.</p>
<details><summary>Scenario ${escapeHtml(scenario.name)}</summary><pre>${escapeHtml(text)}</pre></details></section>`;
}
