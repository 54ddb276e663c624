/** Entry point of the agent: loads zod without unused parts, then runs the command line. */
import { importWithout } from './import-without.ts';

/** zod's messages in sixty other languages cost an idle agent 1 MB of memory. */
const UNUSED_OF_ZOD = new Set(['../locales/index.js']);

if (process.features.typescript === false)
  throw new Error('run the agent with Node 26: npm run agent');

await importWithout(UNUSED_OF_ZOD, () => import('zod'));
const { runCommandLine } = await import('./commands/command-line.ts');
await runCommandLine(process.argv.slice(2), process.env);
