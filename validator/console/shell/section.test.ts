import { expect, it } from 'vitest';
import { sectionOf } from './section.ts';

const PATHS = ['/', '/pods', '/validator', '/validator/cycles'];

it.each([
  ['/', '/'],
  ['/pods', '/pods'],
  ['/pods/a/logs', '/pods'],
  ['/podsets', null],
  ['/validator', '/validator'],
  ['/validator/cycles/7', '/validator/cycles'],
  ['/validator/nodes/a', '/validator'],
])('%s belongs to the section %s', (page, section) => {
  expect(sectionOf(PATHS, page)).toBe(section);
});
