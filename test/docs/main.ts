/**
 * `npm run docs`: rewrites the generated tables of the READMEs, the coverage of the default policy, the console's types of
 * the interface and the texts of --help.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { acceptNoArguments } from '../run/no-arguments.ts';
import { clientTypes } from './client-types.ts';
import {
  COVERAGE_FILE,
  defaultCoverage,
  GENERATED,
  readDocument,
  regenerate,
} from './generated.ts';
import { HELP_TEXTS, outputOf } from './help-texts.ts';

acceptNoArguments(`Writes everything that is generated from the sources: tables of the READMEs, types of the console, texts of --help.

  npm run docs
`);

for (const path of Object.keys(GENERATED)) {
  const before = readDocument(path);
  const after = await regenerate(before);
  write(path, after);
  process.stdout.write(`${path}: ${before === after ? 'unchanged' : 'updated'}\n`);
}
write(COVERAGE_FILE, defaultCoverage());
for (const [path, text] of await clientTypes()) write(path, text);
for (const text of HELP_TEXTS) write(text.path, await outputOf(text.program, '--help'));

function write(path: string, text: string): void {
  writeFileSync(join(import.meta.dirname, '../..', path), text);
}
