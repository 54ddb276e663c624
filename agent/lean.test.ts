import { expect, it } from 'vitest';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';

const shared = (path: string) =>
  JSON.stringify(new URL(`shared/${path}`, new URL('..', import.meta.url)).href);

/** Program that creates a listener after everything is loaded, then prints the loaded modules. */
const LISTS = `import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
process.once('beforeExit', async () => {
  const { createHttpServer } = await import(${shared('http/server.ts')});
  const { createLog } = await import(${shared('runtime/log.ts')});
  const { systemClock: clock } = await import(${shared('runtime/clock.ts')});
  const { systemRandom: random } = await import(${shared('runtime/random.ts')});
  const log = createLog({ name: 'lean', level: 'fatal' });
  await createHttpServer({ log, clock, random, bodyLimitBytes: 1 }).close();
  loaded.push('a listener');
});
process.on('exit', () => process.stdout.write([...loaded, ...process.moduleLoadList].join('\\n')));`;

it('loads only what an idle agent needs', async () => {
  const list = `--import=data:text/javascript,${encodeURIComponent(LISTS)}`;
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 1_000_000, env: {} };
  const { stdout } = await runCommand(
    process.execPath,
    [list, ...agentArguments('--version')],
    bounds,
  );
  const loaded = stdout.split('\n');
  expect(loaded).toContain('a listener');
  expect(loaded).toContainEqual(expect.stringContaining('/agent/app.ts'));
  expect(loaded).toContainEqual(expect.stringContaining('/zod/v4/locales/en.js'));
  const heavy =
    /undici|zod\/v4\/locales\/(?!en\.js)|\/ajv|fast-json-stringify-compiler|grpc|ssh2\/|tar-fs|systeminformation/;
  expect(loaded.filter((each) => heavy.test(each))).toEqual([]);
});
