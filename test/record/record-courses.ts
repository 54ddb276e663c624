/**
 * Runs the sessions of the READMEs, as printed, against a marketplace whose hosts record what they see, and records what the
 * sessions do until their first login. A relay before the central API records when a session reads its pod.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { runSession, shellBlock } from '../docs/sessions.ts';
import { DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { createObservedMarket } from '../fakes/scenes/observed-market.ts';
import type { OrdinaryRentals } from '../fixtures/ordinary-rentals.ts';

type Course = OrdinaryRentals['courses'][number];

/** Locales of containers, of Debian and Ubuntu servers, and of desktops. */
const LOCALES = [null, 'C.UTF-8', 'en_US.UTF-8'];

/** Sessions as printed up to the first login, and the removal of the pod. */
const SESSIONS: readonly { name: string; block(): string }[] = [
  { path: 'README.md', heading: 'Rent a pod' },
  { path: 'validator/central/README.md', heading: 'Rent and use a pod' },
].map(({ path, heading }) => ({
  name: `${path}: ${heading}`,
  block() {
    const [until = ''] = shellBlock(path, heading).split('\ntimeout 5 curl');
    return `${until}\napi -X DELETE "$API/pods/$POD" | jq .status\n`;
  },
}));

/** Runs each session `rounds` times with each locale. */
export async function recordCourses(
  rounds: number,
  print: (line: string) => void,
): Promise<Course[]> {
  const market = await createObservedMarket(1);
  const relay = await startRelay(market.api);
  const home = mkdtempSync(join(tmpdir(), 'podwright-courses-'));
  const courses: Course[] = [];
  try {
    const pair = createSshKeyPair(systemRandom, 'podwright-demo');
    const keyFile = join(home, 'key');
    writeFileSync(keyFile, pair.privateKeyPem, { mode: 0o600 });
    writeFileSync(`${keyFile}.pub`, `${pair.publicKey}\n`);
    await market.useKey(pair.publicKey);
    const demo = {
      base_url: relay.url,
      account: { api_key: market.account.apiKey },
      templates: [{ id: DEFAULT_TEMPLATE }],
      ssh: { private_key_file: keyFile },
    };
    writeFileSync(join(home, 'demo.json'), JSON.stringify(demo));
    const [node = ''] = market.nodes;
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, block } of SESSIONS) {
        for (const locale of LOCALES) {
          relay.clear();
          const seen = market.nextRental(node);
          const { PATH, HOME } = process.env;
          const language = locale === null ? {} : { LANG: locale };
          const [rental] = await Promise.all([
            seen,
            runSession([block()], home, { PATH, HOME, ...language }),
          ]);
          const course = {
            session: name,
            locale: rental.login.variables['LANG'] ?? null,
            ...relay.paces(rental.login.connectedMs),
            requests_before: rental.requests.length,
          };
          print(JSON.stringify(course));
          courses.push(course);
          await market.untilFree(node);
        }
      }
    }
    return courses;
  } finally {
    await relay.close();
    await market.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** `sleep` of the sessions, for a pod that already runs at the first read. */
const SLEEP_MS = 1_000;
const POD = /^\/pods\/[^/]+$/;

/** Relays requests to the central API, and records the reads of pods. */
async function startRelay(target: string) {
  const reads: { askedMs: number; answeredMs: number; runs: boolean }[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming;
    const askedMs = systemClock.monotonicMs();
    const passed = send(`${target}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      let text = '';
      answer.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        outgoing.write(chunk);
      });
      answer.on('end', () => {
        outgoing.end();
        if (method !== 'GET' || !POD.test(url)) return;
        reads.push({
          askedMs,
          answeredMs: systemClock.monotonicMs(),
          runs: text.includes('"status":"RUNNING"'),
        });
      });
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => {
    server.listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    clear: () => void reads.splice(0),
    /** Mean pause between reads of a pod that starts, and the time from its start to the login. */
    paces(loginMs: number): Pick<Course, 'poll_ms' | 'login_after_ms'> {
      const first = reads.findIndex(({ runs }) => runs);
      const until = reads.slice(0, first + 1);
      const [begin] = until;
      const end = until.at(-1);
      if (begin === undefined || end === undefined) throw new Error('the pod was not read');
      return {
        login_after_ms: Math.round(loginMs - end.answeredMs),
        poll_ms: first === 0 ? SLEEP_MS : Math.round((end.askedMs - begin.askedMs) / first),
      };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
