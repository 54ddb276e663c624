/**
 * `node validator/console/build/main.ts FOLDER`: builds the console into FOLDER, unless FOLDER has the build of these
 * sources. The set-up and the image build call it; the server only reads FOLDER.
 */
import { resolve } from 'node:path';
import { buildConsole } from './build.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('Usage: node validator/console/build/main.ts FOLDER\n');
  process.exitCode = 2;
} else {
  // Libraries choose their code by this variable.
  process.env['NODE_ENV'] = 'production';
  await buildConsole(resolve(folder));
}
