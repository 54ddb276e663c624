import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { readScenario } from './scenario.ts';

it.each([
  ['/no/such/file.json', 'there is no file /no/such/file.json'],
  [import.meta.dirname, `${import.meta.dirname} is a folder`],
])('refuses %s with a remedy', (path, problem) => {
  expect(() => readScenario(path)).toThrow(ConfigError);
  expect(() => readScenario(path)).toThrow(`--scenario: ${problem}. Name a scenario file`);
});
