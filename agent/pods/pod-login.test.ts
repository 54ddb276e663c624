import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { EngineError } from '../containers/engine/engine.ts';
import { openDatabase } from '../database/database.ts';

const PASSWORD = 'S3CRET-of-ann';
const auth = { host: 'registry.example', username: 'ann', password: PASSWORD };
const image = { reference: 'registry.example/private:1' };

function createAgent() {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  const lines: string[] = [];
  const log = createLog(
    { name: 'test', level: 'trace' },
    { write: (line) => void lines.push(line) },
  );
  const database = openDatabase(':memory:');
  const agent = createTestAgent({ engine, clock, log, database });
  const url = `/v1/pods/${systemRandom.uuid()}`;
  const put = (change: object) =>
    agent.server.inject({ method: 'PUT', url, payload: podSpec({ image, ...change }) });
  const rows = () => database.prepare('SELECT * FROM pod_registry_auth').all();
  return { engine, agent, lines, database, url, put, rows };
}

it('shows a registry login neither in logs nor in responses, whatever fails', async () => {
  const { engine, agent, lines, database, url, put } = createAgent();
  let tries = 0;
  engine.hook = async (moment, method) => {
    if (moment !== 'before' || method !== 'resolveDigest') return;
    tries += 1;
    throw new EngineError('image_unreachable', 'no such host');
  };
  const answers = [
    await put({ registry_auth: auth }),
    await put({ registry_auth: { ...auth, host: 'other.example' } }),
    await put({ registry_auth: { ...auth, password: `${PASSWORD}\n` } }),
    await put({ registry_auth: { ...auth, port: 1 } }),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 400, 422, 422]);
  await eventually('the failed pull', async () => tries > 0);
  answers.push(await agent.server.inject(url), await agent.server.inject('/v1/pods'));
  expect(answers.map(({ body }) => body).join()).not.toContain('S3CRET');
  expect(lines.join()).not.toContain('S3CRET');
  expect(lines.length).toBeGreaterThan(0);
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  for (const { name } of tables) {
    const content = JSON.stringify(database.prepare(`SELECT * FROM ${String(name)}`).all());
    expect([name, content.includes('S3CRET')]).toEqual([name, false]);
  }
  await agent.stop();
});

it('retains a login as long as the pod may need to pull, and accepts a newer one', async () => {
  const { agent, url, put, rows } = createAgent();
  await put({ registry_auth: auth });
  const [first] = rows();
  const again = await put({ registry_auth: { ...auth, password: 'newer' } });
  expect(again.statusCode).toBe(200);
  expect(rows()).toHaveLength(1);
  expect(rows()[0]).not.toEqual(first);
  // The same spec without a login changes nothing.
  expect((await put({})).statusCode).toBe(200);
  expect(rows()).toHaveLength(1);
  await agent.server.inject({ method: 'DELETE', url });
  expect(rows()).toEqual([]);
  await agent.stop();
});
