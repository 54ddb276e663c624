/** The other programs check and print their configuration. */
import { it } from 'vitest';
import { expectConfigurationChecked, PROGRAMS } from './configuration-cases.ts';

it.each(PROGRAMS.slice(1))('$main checks its configuration and prints it', (program) =>
  expectConfigurationChecked(program),
);
