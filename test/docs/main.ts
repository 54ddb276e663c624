/** `npm run docs`: rewrites the generated tables of the READMEs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED, readDocument, regenerate } from './generated.ts';

for (const path of Object.keys(GENERATED)) {
  const before = readDocument(path);
  const after = await regenerate(before);
  writeFileSync(join(import.meta.dirname, '../..', path), after);
  process.stdout.write(`${path}: ${before === after ? 'unchanged' : 'updated'}\n`);
}
