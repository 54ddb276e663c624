import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { ensureOfficialTemplates } from './official-templates.ts';
import { markTemplateRented, retireTemplate, templateForRent } from './template-use.service.ts';

const OFFICIAL_ID = '1948937e-5049-47ad-8e26-bcf1a4549d70';
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const DIGEST = `sha256:${'a'.repeat(64)}`;

let central: TestCentral;
let headers: Record<string, string>;
let accountId: string;
beforeEach(async () => {
  central = await createTestCentral();
  ({ key: headers, id: accountId } = await central.signUp());
});
afterEach(() => central.close());

const post = (body: object) => central.call('POST', '/templates', { headers, body });
const put = (id: string, body: object) =>
  central.call('PUT', `/templates/${id}`, { headers, body });

it('installs the official templates in a fixed order, and does not change them at a restart', async () => {
  await ensureOfficialTemplates(central.ports.db, central.clock);
  const { body } = await central.call('GET', '/templates');
  expect(body.map((row: { name: string }) => row.name)).toEqual([
    'Podwright base (offline)',
    'Ubuntu 24.04',
    expect.stringContaining('PyTorch'),
  ]);
  expect(body[0]).toMatchObject({
    id: OFFICIAL_ID,
    docker_image: 'podwright.local/base',
    docker_image_tag: '1',
    internal_ports: [22, 8000],
    category: 'UBUNTU',
    status: 'VERIFY_SUCCESS',
    user_id: null,
    is_private: false,
  });
  // The home of root is a volume, so that it survives edits.
  for (const { volumes } of body) expect(volumes).toEqual(['/workspace', '/root']);
  expect((await put(OFFICIAL_ID, { name: 'mine' })).status).toBe(404);
  const removed = await central.call('DELETE', `/templates/${OFFICIAL_ID}`, { headers });
  expect([removed.status, removed.body.error.code]).toEqual([404, 'template_not_found']);
});

it('applies the documented defaults to absent and null members', async () => {
  const row = {
    id: expect.any(String),
    name: 'x',
    description: '',
    docker_image: 'ubuntu',
    docker_image_tag: 'latest',
    docker_image_digest: '',
    docker_image_size: null,
    category: 'UBUNTU',
    status: 'VERIFY_SUCCESS',
    user_id: accountId,
    is_private: true,
    internal_ports: [22, 8000],
    environment: {},
    entrypoint: '',
    startup_commands: '',
    volumes: ['/workspace'],
    readme: '',
    tags: [],
    one_time_template: false,
    is_temporary: false,
    container_start_immediately: true,
    supports_docker: null,
    docker_credential_id: null,
    created_at: '2027-01-15T08:00:00.000000',
    updated_at: '2027-01-15T08:00:00.000000',
  };
  const created = await post({ name: 'x', docker_image: 'ubuntu', unknown: 1 });
  expect([created.status, created.body]).toEqual([200, row]);
  const nulls = {
    internal_ports: null,
    is_private: null,
    environment: null,
    docker_credential_id: null,
    docker_image_tag: null,
  };
  const again = await post({ name: 'x', docker_image: 'ubuntu', ...nulls });
  expect(again.body).toEqual(row);
  expect(again.body.id).not.toBe(created.body.id);
});

it('stores tags, each once, and replaces them as a whole', async () => {
  const tagged = { name: 'x', docker_image: 'ubuntu', tags: ['cuda', 'ours', 'cuda'] };
  const { body: row } = await post(tagged);
  expect(row.tags).toEqual(['cuda', 'ours']);
  expect((await put(row.id, { readme: 'r' })).body.tags).toEqual(['cuda', 'ours']);
  expect((await put(row.id, { tags: ['new'] })).body.tags).toEqual(['new']);
  const { body: official } = await central.call('GET', `/templates/${OFFICIAL_ID}`);
  expect(official.tags).toEqual([expect.any(String)]);
});

it('lists templates by owner, words and page', async () => {
  const { key: others } = await central.signUp();
  for (const name of ['100% Torch', 'torch_2', 'other']) {
    await post({ name, docker_image: 'ubuntu', is_private: false, tags: ['Large'] });
    await central.clock.advance(1);
  }
  const list = async (query: string, by = headers) => {
    const { body } = await central.call('GET', `/templates?${query}`, { headers: by });
    return body.map((row: { name: string }) => row.name);
  };
  expect(await list('owner=own')).toEqual(['100% Torch', 'torch_2', 'other']);
  expect(await list('owner=own', others)).toEqual([]);
  expect(await list('owner=own', {})).toEqual([]);
  expect(await list('owner=shared', others)).toEqual(['100% Torch', 'torch_2', 'other']);
  expect(await list('owner=shared')).toEqual([]);
  expect(await list('owner=official')).toHaveLength(3);
  expect(await list('owner=own&q=torch%20large')).toEqual(['100% Torch', 'torch_2']);
  expect(await list('q=0%25%20t')).toEqual(['100% Torch']);
  expect(await list('q=h_2')).toEqual(['torch_2']);
  const pages = [await list('limit=2'), await list('limit=2&page=2'), await list('limit=2&page=3')];
  expect(pages.flat()).toEqual(await list(''));
  expect(pages.map(({ length }) => length)).toEqual([2, 2, 2]);
  expect((await central.call('GET', '/templates?limit=0')).body.error.code).toBe(
    'validation_error',
  );
});

it('accepts a whole template as an update, and changes only the members that differ', async () => {
  const { body: row } = await post({
    name: 'x',
    docker_image: 'host',
    docker_image_tag: '5000/app:1',
    docker_image_digest: DIGEST,
    environment: { A: 'b' },
    startup_commands: "bash -c 'a && b'",
    internal_ports: [22, 80, 80],
  });
  expect(row).toMatchObject({ docker_image: 'host:5000/app', internal_ports: [22, 80] });
  await central.clock.advance(1_000);
  const same = await put(row.id, row);
  expect(same.body).toEqual({ ...row, updated_at: '2027-01-15T08:00:01.000000' });
  const changed = await put(row.id, { ...row, docker_image_tag: '2', readme: 'r' });
  expect(changed.body).toEqual({
    ...same.body,
    docker_image_tag: '2',
    docker_image_digest: '',
    readme: 'r',
  });
  const renamed = await put(row.id, { name: 'y' });
  expect(renamed.body).toEqual({ ...changed.body, name: 'y' });
  const image = await put(row.id, { docker_image: 'debian' });
  expect(image.body).toMatchObject({
    docker_image: 'debian',
    docker_image_tag: 'latest',
    name: 'y',
  });
  expect((await central.call('GET', `/templates/${row.id}`, { headers })).body).toEqual(image.body);
});

it.each([
  [{ startup_commands: 'sleep infinity; rm -rf /' }, 'unquoted ;'],
  [{ entrypoint: 'sh -c $(id)' }, 'unquoted $'],
  [{ startup_commands: "echo 'x" }, 'without its end'],
  [{ startup_commands: 'x '.repeat(65) }, 'more than 64 words'],
  [{ docker_image: 'UPPER' }, 'malformed'],
  [{ docker_image_tag: 'a b' }, 'malformed'],
  [{ docker_image_digest: 'sha256:1' }, 'malformed'],
  [{ docker_credential_id: UNKNOWN_ID }, 'credential'],
])('rejects %j as template_invalid, in a new template and in a change', async (part, message) => {
  const { body: row } = await post({ name: 'x', docker_image: 'ubuntu' });
  for (const refused of [
    await post({ name: 'x', docker_image: 'ubuntu', ...part }),
    await put(row.id, part),
  ]) {
    expect([refused.status, refused.body.error.code]).toEqual([400, 'template_invalid']);
    expect(refused.body.message).toContain(message);
  }
});

it.each([
  { name: '' },
  { name: 5 },
  { internal_ports: [0] },
  { internal_ports: [70_000] },
  { internal_ports: Array.from({ length: 65 }, (_, index) => index + 1) },
  { environment: { 'A B': '1' } },
  { environment: { A: 1 } },
  { environment: { A: 'x\0' } },
  { category: 'WINDOWS' },
  { entrypoint: 'a\0b' },
  { is_private: 'yes' },
])('returns 422 for %j', async (part) => {
  expect((await post({ name: 'x', docker_image: 'ubuntu', ...part })).status).toBe(422);
});

it('shows public templates to all accounts, and private templates only to their owner', async () => {
  const stranger = await central.signUp();
  const { body: shared } = await post({ name: 'p', docker_image: 'ubuntu', is_private: false });
  const { body: own } = await post({ name: 'q', docker_image: 'ubuntu' });
  const { body: once } = await post({
    name: 'r',
    docker_image: 'ubuntu',
    is_private: false,
    one_time_template: true,
  });
  const idsFor = async (sent: Record<string, string>) => {
    const { body } = await central.call('GET', '/templates/', { headers: sent });
    return body.slice(3).map((row: { id: string }) => row.id);
  };
  expect(await idsFor({})).toEqual([shared.id]);
  expect(await idsFor(stranger.key)).toEqual([shared.id]);
  expect((await idsFor(headers)).toSorted()).toEqual([shared.id, own.id, once.id].toSorted());
  expect((await central.call('GET', `/templates/${shared.id}`)).body).toEqual(shared);

  const withoutIds = (body: { request_id: string; error: object }) => {
    const { request_id: _, error, ...rest } = body;
    return { ...rest, error: { ...error, request_id: '' } };
  };
  for (const method of ['GET', 'PUT', 'DELETE'] as const) {
    const sent = { headers: stranger.key, ...(method === 'PUT' ? { body: { name: 'z' } } : {}) };
    const foreign = await central.call(method, `/templates/${own.id}`, sent);
    const absent = await central.call(method, `/templates/${UNKNOWN_ID}`, sent);
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'template_not_found']);
    expect(withoutIds(foreign.body)).toEqual(withoutIds(absent.body));
  }
  expect((await central.call('GET', `/templates/${own.id}`)).status).toBe(404);
  const removed = await central.call('DELETE', `/templates/${own.id}`, { headers });
  expect([removed.status, removed.body]).toEqual([200, own]);
  expect((await central.call('GET', `/templates/${own.id}`, { headers })).status).toBe(404);
});

it('accepts at most 20 templates per hour and account', async () => {
  const body = { name: 'ephemeral', docker_image: 'ubuntu' };
  for (let made = 0; made < 20; made += 1) expect((await post(body)).status).toBe(200);
  const refused = await post(body);
  expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
  expect(refused.headers['retry-after']).toBe('60');
  await central.clock.advance(3_600_000);
  expect((await post(body)).status).toBe(200);
});

describe('a template for a rental', () => {
  const forRent = (id: string | null, defaultId: string | null = null, account = accountId) =>
    templateForRent(central.ports.db, account, id, defaultId);

  it('is the requested template, or otherwise the default template; without either, the call throws', async () => {
    const { body: own } = await post({ name: 'x', docker_image: 'ubuntu' });
    expect((await forRent(own.id, OFFICIAL_ID)).id).toBe(own.id);
    expect((await forRent(null, OFFICIAL_ID)).id).toBe(OFFICIAL_ID);
    await expect(forRent(null)).rejects.toMatchObject({ code: 'template_invalid' });
    await expect(forRent(UNKNOWN_ID)).rejects.toMatchObject({ code: 'template_not_found' });
    const { id: stranger } = await central.signUp();
    await expect(forRent(own.id, null, stranger)).rejects.toMatchObject({
      code: 'template_not_found',
    });
  });

  it.each(['one_time_template', 'is_temporary'])(
    'can be used once with the flag %s',
    async (flag) => {
      const { body } = await post({ name: 'x', docker_image: 'ubuntu', [flag]: true });
      const template = await forRent(body.id);
      await markTemplateRented(central.ports.db, template, 5);
      await expect(forRent(body.id)).rejects.toMatchObject({ code: 'template_invalid' });
      const twice = markTemplateRented(central.ports.db, template, 6);
      await expect(twice).rejects.toMatchObject({ code: 'template_invalid' });
    },
  );

  it('can be used repeatedly without such a flag; only one-time templates are deleted with their pod', async () => {
    const { body: plain } = await post({ name: 'x', docker_image: 'ubuntu' });
    const { body: once } = await post({
      name: 'x',
      docker_image: 'ubuntu',
      one_time_template: true,
    });
    const { db } = central.ports;
    for (let turn = 0; turn < 2; turn += 1) {
      await markTemplateRented(db, await forRent(plain.id), turn);
    }
    await retireTemplate(db, plain.id, 1);
    await retireTemplate(db, once.id, 1);
    await retireTemplate(db, UNKNOWN_ID, 1);
    expect((await forRent(plain.id)).id).toBe(plain.id);
    await expect(forRent(once.id)).rejects.toMatchObject({ code: 'template_not_found' });
  });
});
