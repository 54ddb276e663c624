/**
 * `npm run docs`: rewrites the generated tables of the READMEs, the coverage of the default policy, the console's types of
 * the interface and the texts of --help.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientTypes } from './client-types.ts';
import {
  COVERAGE_FILE,
  defaultCoverage,
  GENERATED,
  readDocument,
  regenerate,
} from './generated.ts';
import { HELP_FOLDERS, outputOf } from './help-texts.ts';

for (const path of Object.keys(GENERATED)) {
  const before = readDocument(path);
  const after = await regenerate(before);
  write(path, after);
  process.stdout.write(`${path}: ${before === after ? 'unchanged' : 'updated'}\n`);
}
write(COVERAGE_FILE, defaultCoverage());
for (const [path, text] of await clientTypes()) write(path, text);
for (const folder of HELP_FOLDERS) write(`${folder}/help.txt`, await outputOf(folder, '--help'));

function write(path: string, text: string): void {
  writeFileSync(join(import.meta.dirname, '../..', path), text);
}
