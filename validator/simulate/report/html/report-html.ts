/** `report.html`: what a simulation showed, for readers who know neither its code nor its files. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import { detectionSections } from './detection-sections.ts';
import { ledgerSection } from './ledger-section.ts';
import { marketSections, marketSize } from './market-sections.ts';
import { pageHtml } from './page.ts';
import { providerSections } from './provider-sections.ts';
import { rentalSections } from './rental-sections.ts';
import { type Section, sectionHtml, tableHtml } from './section.ts';
import { selfRentalSection } from './self-rental-section.ts';
import { counted, escapeHtml, exactUsd, number } from './text.ts';

const HOURS_PER_DAY = 24;

export function reportHtml(report: Report): string {
  const { scenario, run } = report;
  const sections = [
    ...marketSections(report),
    ...rentalSections(report),
    ...providerSections(report),
    selfRentalSection(report),
    ...detectionSections(report),
    ledgerSection(report),
  ];
  const title = `Simulation ${scenario.name}, seed ${run.seed}`;
  return pageHtml(
    title,
    [
      `<h1>${escapeHtml(title)}</h1>`,
      `<p>${escapeHtml(scenario.description)}</p>`,
      outcome(report),
      summary(report),
      contents(sections),
      ...sections.map(sectionHtml),
      differences(report),
      input(report),
    ].join('\n'),
  );
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
  const { run, rentals, days } = report;
  const last = days.at(-1);
  const rows = [
    ['Simulated time', `${number(run.hours / HOURS_PER_DAY)} days`],
    ['Market', `${marketSize(report)}, ${counted(run.renters, 'renter')}`],
    ['Rentals', `${rentals.requested} requested, ${rentals.accepted} accepted`],
    ['Failed to start', String(sum(Object.values(rentals.failed_starts)))],
    ['Interrupted', String(rentals.interruptions.length)],
    ['Inspections by the validator, until the last day', String(last?.checks ?? 0)],
    ['Postings in the ledger, until the last day', String(last?.postings ?? 0)],
    ['Charged, until the last day', exactUsd(last?.charged_usd ?? 0)],
    ['Events', String(run.events)],
    ['Hash of the run', run.hash],
  ];
  return tableHtml({ head: ['Figure', 'Value'], rows });
}

const contents = (sections: readonly Section[]): string =>
  `<nav aria-label="Contents"><ul>${sections
    .map(({ id, finding }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(finding)}</a></li>`)
    .join('')}<li><a href="#settings">Settings that differ from production</a></li></ul></nav>`;

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

function input({ scenario, run, program }: Report): string {
  const text = JSON.stringify(scenario, null, 2);
  return `<section id="input"><h2>Input</h2>
<p>Version ${escapeHtml(program)}, seed ${run.seed}, ${counted(run.providers, 'provider')}, ${counted(run.renters, 'renter')}, ${counted(run.days, 'day')}, weight policy ${escapeHtml(run.policy)}.</p>
<details><summary>Scenario ${escapeHtml(scenario.name)}</summary><pre>${escapeHtml(text)}</pre></details></section>`;
}
