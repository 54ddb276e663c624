/** `npm run record-use`: records ordinary rentals anew, and derives what hidden rentals copy. Needs root. */
import { acceptNoArguments } from '../run/no-arguments.ts';

acceptNoArguments(`Records ordinary rentals anew, and derives from them what hidden rentals copy. Needs root and takes minutes.

  npm run record-use
`);

const { recordUse } = await import('./record-use.ts');
await recordUse({
  seed: 1,
  keys: 400,
  rounds: 18,
  tests: ['validator/central/market', 'validator/central/money', 'validator/central/backups'],
  print: (line) => process.stdout.write(`${line}\n`),
});
