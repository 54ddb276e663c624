import { expect, it } from 'vitest';
import { fail, ok } from './finding.ts';
import { jsonReport, textReport } from './report.ts';

const FINDINGS = [
  ok('docker', 'Docker 27'),
  fail('nvidia-driver', 'said \u001b[2Jthis\nand \u202ethat', 'reboot'),
];

it('prints a line per finding and the remedy below, with nothing in it that a terminal obeys', () => {
  expect(textReport(FINDINGS, false)).toBe(
    [
      'ok       docker         Docker 27',
      'fail     nvidia-driver  said  [2Jthis and  that',
      '         → reboot',
      '',
      '1 ok, 0 warn, 1 fail, 0 unknown',
      '',
    ].join('\n'),
  );
});

it('colours the status alone, and only when asked to', () => {
  expect(textReport(FINDINGS, true)).toContain('\u001b[31mfail   \u001b[0m  nvidia-driver');
});

it('keeps the whole words in JSON', () => {
  expect(JSON.parse(jsonReport(FINDINGS))).toEqual(FINDINGS);
});
