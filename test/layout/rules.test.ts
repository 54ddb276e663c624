/** Tests that each layout rule reports the files that break the rule, and no other files. */
import { describe, expect, it } from 'vitest';
import { readSource } from './imports.ts';
import { RULES } from './rules.ts';

/** Files as [path, text] by rule name. The named rule must report each file, and no other rule may report it. */
const BROKEN: Record<string, [path: string, text: string][]> = {
  'shared imports neither agent nor validator': [
    ['shared/http/server.ts', "import { a } from '../../agent/app.ts';"],
    ['shared/money.ts', "export * from '../validator/app.ts';"],
  ],
  'agent and validator never import each other': [
    ['agent/app.ts', "import type { A } from '../validator/app.ts';"],
    ['validator/embedded/local-agent.ts', "const a = await import('../../agent/main.ts');"],
  ],
  'only validator/main.ts, embedded and simulate compose the central API': [
    ['validator/inspection/health.job.ts', "import { a } from '../central/app.ts';"],
  ],
  'the console imports nothing outside its folder, and only tests import it': [
    ['validator/console/renter/home-page.tsx', "import { a } from '#shared/runtime/errors.ts';"],
    ['validator/console/api/client.ts', "import { readFileSync } from 'node:fs';"],
    ['validator/central/app.ts', "import { a } from '../console/paths.ts';"],
  ],
  'routes never import stores': [
    ['validator/central/market/pods/pod.routes.ts', "import { a } from './pod.store.ts';"],
    ['agent/pods/pod.routes.ts', "import { a } from '../store/pod.store.ts';"],
  ],
  'a central concept imports only the service, schemas and states of another': [
    [
      'validator/central/market/pods/pod.service.ts',
      "import { a } from '../../delivery/events/event.store.ts';",
    ],
    [
      'validator/central/market/pods/pod.service.ts',
      "export { a } from '../../delivery/events/event.routes.ts';",
    ],
  ],
  'services import types, row locks and transactions from the central database, nothing else': [
    [
      'validator/central/market/pods/pod.service.ts',
      "import { open } from '../../platform/database/database.ts';",
    ],
  ],
  'dockerode is imported in one place': [
    ['agent/pods/pod.service.ts', "import Docker from 'dockerode';"],
  ],
  'node:sqlite is imported in one place': [
    [
      'validator/central/platform/database/dialect.ts',
      "import { DatabaseSync } from 'node:sqlite';",
    ],
  ],
  'kysely is imported in one place': [
    ['validator/central/market/pods/pod.service.ts', "import { sql } from 'kysely';"],
    ['validator/central/market/pods/pod.schemas.ts', "import type { Kysely } from 'kysely/esm';"],
  ],
  'pg is imported in one place': [
    ['validator/central/market/pods/pod.store.ts', "import { Pool } from 'pg';"],
  ],
  'systeminformation is imported in one place': [['agent/app.ts', "import 'systeminformation';"]],
  'node:child_process is imported in one place': [
    ['agent/backups/restic.ts', "import { spawn } from 'node:child_process';"],
  ],
  '@polkadot/* is imported in one place': [
    ['agent/auth/verify-request.ts', "import { Keyring } from '@polkadot/keyring';"],
    ['shared/signing/signer.ts', "import { u8 } from '@polkadot/util-crypto';"],
  ],
  'ssh2 is imported in one place': [['agent/exec/exec.ts', "const ssh = require('ssh2');"]],
  'fast-xml-parser is imported in one place': [
    ['agent/app.ts', "import { X } from 'fast-xml-parser';"],
  ],
  'pino is imported in one place': [['agent/app.ts', "import pino from 'pino';"]],
  'tar-stream is imported in one place': [
    ['agent/backups/export.ts', "import tar from 'tar-stream';"],
  ],
  'vite is imported in one place': [
    ['validator/embedded/main.ts', "import { build } from 'vite';"],
  ],
  'react is imported in one place': [
    ['validator/console/api/client.ts', "import { useState } from 'react';"],
  ],
  'playwright-core is imported in one place': [
    ['validator/embedded/main.ts', "import { chromium } from 'playwright-core';"],
  ],
  'node:timers is imported in one place': [
    ['agent/app.ts', "import t from 'node:timers/promises';"],
  ],
  'the environment is read in main.ts only': [
    ['agent/config.ts', "const a = process.env['A'];"],
    ['agent/domain.ts', 'const { env } = process;'],
  ],
  'accounts are settled before money leaves them': [
    [
      'validator/central/money/transfers/transfer.service.ts',
      "const a = { debit: paidAccount(id), credit: 'external:topup' };",
    ],
    ['validator/central/market/rentals/rental.service.ts', 'await placeHold(tx, id, 1, cause);'],
  ],
  'time comes from the Clock': [
    ['agent/app.ts', 'const a = Date.now();'],
    ['agent/app.ts', 'const a = new Date(0);'],
    ['agent/app.ts', 'setTimeout(run, 1);'],
    ['agent/app.ts', 'globalThis.setInterval(run, 1);'],
    ['agent/app.ts', 'const a = performance.now();'],
    ['agent/app.ts', 'fetch(url, { signal: AbortSignal.timeout(1) });'],
    ['agent/app.ts', `const a = \`\${\`\${Date.now()}\`}\`;`],
  ],
  'randomness comes from Random': [
    ['agent/app.ts', 'const a = Math.random();'],
    ['agent/app.ts', "import { randomUUID } from 'node:crypto';"],
    ['agent/app.ts', 'crypto.getRandomValues(a);'],
    ['agent/app.ts', 'const a = randomBytes(1);'],
  ],
  'barrel files are forbidden': [['agent/pods/index.ts', "export { a } from './pod.ts';"]],
  'no folder has a catch-all name': [
    ['shared/utils/a.ts', 'export const a = 1;'],
    ['test/lib/a.ts', 'export const a = 1;'],
  ],
  'exports have names': [
    ['agent/app.ts', 'export default function app() {}'],
    ['agent/app.ts', 'const a = 1;\nexport { a as default };'],
  ],
  'no test is skipped, focused or left for later': [
    ['agent/app.test.ts', "it.skip('a', () => {});"],
    ['agent/app.test.ts', "describe.concurrent.only('a', () => {});"],
    ['test/e2e/rent.test.ts', "test.todo('a');"],
  ],
  'modules have no state: test files share loaded modules': [
    ['agent/pod-core.ts', 'let running = 0;'],
    ['shared/cache.ts', 'export const seen = new Map<string, Set<number>>();'],
    ['test/fakes/agent.ts', 'const agents: Map<string, Agent> = new Map();'],
  ],
  'no fresh literal is spread': [['agent/app.ts', 'const a = { ...{ b, c }, d };']],
  'no module is mocked': [['agent/app.test.ts', "vi.mock('./a.ts');"]],
  'no check is silenced by a cast': [['agent/app.ts', 'const a = b as any;']],
  'no check is silenced by a comment': [
    ['agent/app.ts', '// biome-ignore lint/a: b\nrun();'],
    ['agent/app.test.ts', '/* @ts-expect-error */ run();'],
    ['agent/app.ts', '// @ts-ignore\nrun();'],
  ],
};

/** Valid files that resemble violations; no rule may report them. */
const SOUND: [path: string, text: string][] = [
  [
    'agent/app.ts',
    "import { a } from '#shared/runtime/clock.ts';\n// import b from 'dockerode'; Date.now()",
  ],
  ['agent/app.ts', 'const help = "import x from \'ssh2\'; new Date(); as any";'],
  ['agent/app.ts', "const a = /['\"`]/; const b = 'Date.now()'; const c = /setTimeout(/;"],
  ['agent/app.ts', `a = \`Date.now() \${b / 2} \${\`as any \${{ c: 1 }.c}\`} new Date\`;`],
  ['agent/app.ts', 'server.setTimeout(1000); sum = total / 2; sum = sum / 2;'],
  ['agent/main.ts', 'start(process.env);'],
  ['agent/app.test.ts', 'setTimeout(run, 1); const a = process.env; randomUUID();'],
  ['agent/containers/engine/dockerode-engine.ts', "import Docker from 'dockerode';"],
  ['shared/runtime/clock.ts', 'export const now = () => Date.now();'],
  ['shared/http/server.test.ts', "import { a } from '../../test/fakes/manual-clock.ts';"],
  ['validator/main.ts', "import { a } from './central/app.ts';"],
  ['validator/embedded/demo.ts', "import { a } from '../central/app.ts';"],
  ['validator/simulate/world.ts', "import { a } from '../central/app.ts';"],
  ['validator/central/app.ts', "import { a } from './pods/pod.store.ts';"],
  [
    'validator/central/market/pods/pod.service.ts',
    "import type { Db } from '../../platform/database/database.ts';\nimport { a } from './pod.store.ts';\n" +
      "import { b } from '../events/event.service.ts';\nimport { type C } from '../../platform/database/tables.ts';",
  ],
  ['validator/central/market/pods/pod.store.ts', "import { sql } from 'kysely';"],
  ['validator/weights/weight.chain.ts', "import { Keyring } from '@polkadot/keyring';"],
  [
    'test/e2e/rent.test.ts',
    "import { a } from '../../validator/central/market/pods/pod.store.ts';",
  ],
  ['vitest.config.ts', 'export default {};'],
];

function reportedBy(path: string, text: string): string[] {
  const file = readSource(path, text);
  return RULES.filter((rule) => rule.check(file).length > 0).map((rule) => rule.name);
}

describe('the layout rules', () => {
  it('each have a file in this test that violates them', () => {
    expect(Object.keys(BROKEN).toSorted()).toEqual(RULES.map((rule) => rule.name).toSorted());
  });

  for (const [name, files] of Object.entries(BROKEN)) {
    it(`report: ${name}`, () => {
      for (const [path, text] of files) expect(reportedBy(path, text), text).toEqual([name]);
    });
  }

  it('accept valid files', () => {
    for (const [path, text] of SOUND) expect(reportedBy(path, text), text).toEqual([]);
  });

  it('report the line of a violation', () => {
    const file = readSource('agent/app.ts', "const a = 1;\n\nimport pino from 'pino';");
    const reports = RULES.flatMap((rule) => rule.check(file));
    expect(reports).toEqual(['agent/app.ts:3 imports pino']);
  });
});
