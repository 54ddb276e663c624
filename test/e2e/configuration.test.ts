/** One program checks and prints its configuration; `configuration.long.test.ts` runs the others. */
import { it } from 'vitest';
import { expectConfigurationChecked, PROGRAMS } from './configuration-cases.ts';

it.each(PROGRAMS.slice(0, 1))('$main checks its configuration and prints it', (program) =>
  expectConfigurationChecked(program),
);
