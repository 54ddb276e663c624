/** The agent's process: what every part of it needs is loaded lean, then its command line. */
import { importWithout } from './import-without.ts';

/** zod's messages in sixty languages besides English: 1 MB of an idle agent's memory. */
const UNUSED_OF_ZOD = new Set(['../locales/index.js']);

if (process.features.typescript === false) throw new Error('run this with Node 26: npm run agent');

await importWithout(UNUSED_OF_ZOD, () => import('zod'));
const { runCommandLine } = await import('./commands/command-line.ts');
await runCommandLine(process.argv.slice(2), process.env);
