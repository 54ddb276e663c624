/** The shipped configuration and alert rules of Prometheus; `prometheus.long.test.ts` runs them with real processes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';

const SHIPPED = new URL('../../systemd/prometheus/', import.meta.url).pathname;
const RULE_TEST = join(SHIPPED, 'podwright.rules.test.yml');

it('the alert rules pass promtool’s tests', async () => {
  const limits = { timeoutMs: 100_000, maxOutputBytes: 1_000_000 };
  const tried = await runCommand('promtool', ['test', 'rules', RULE_TEST], limits);
  expect(tried).toMatchObject({ exitCode: 0 });
});

it('the alerts round their figures', () => {
  const rules = readFileSync(RULE_TEST.replace('.test.yml', '.yml'), 'utf8');
  const figures = [...rules.matchAll(/\{\{ *\$value(.*?)\}\}/g)].map(([, format = '']) =>
    format.trim(),
  );
  expect(figures.length).toBeGreaterThan(8);
  expect(figures.filter((format) => !/^\| (?:humanize\w*|printf "%\.\df")$/.test(format))).toEqual(
    [],
  );
});

it('scrapes only the agent that the first variables file starts, until addresses are added', () => {
  const config = readFileSync(join(SHIPPED, 'prometheus.yml'), 'utf8');
  const targets = [...config.matchAll(/targets: \[(.*?)\]/g)].map(([, list]) => list);
  const example = readFileSync(join(SHIPPED, '../agent.env.example'), 'utf8');
  const place = /^AGENT_METRICS_LISTEN=(\S+)$/m.exec(example)?.[1];
  expect(targets).toEqual([`'${place}'`, '', '']);
});
