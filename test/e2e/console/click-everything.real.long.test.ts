/** Clicks each link and each button of each page of the console, in a marketplace with objects of every kind. */
import { beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { logInProvider } from '../../../validator/embedded/demo-provider.ts';
import { eventually } from '../../fakes/eventually.ts';
import { api } from '../api.ts';
import { demo, listedExecutors, type PodRow, rent, untilRunning } from '../marketplace-scene.ts';
import { clickPages, type RouteEntry } from './click-pages.ts';
import {
  becomeOperator,
  demoSession,
  providerSession,
  providerSigner,
  runConsole,
} from './console-run.ts';

/** The module has types of browsers, so it is not imported with its types. */
const ROUTES_MODULE = new URL('../../../validator/console/routes.tsx', import.meta.url).pathname;

const { open } = runConsole();
let routes: readonly RouteEntry[];
/** Ids of a running and a deleted pod. */
let pods: string[];

beforeAll(async () => {
  ({ ROUTES: routes } = (await import(/* @vite-ignore */ ROUTES_MODULE)) as {
    ROUTES: readonly RouteEntry[];
  });
  pods = await createObjects();
});

async function create(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await api(demo(), 'POST', path, body);
  expect([path, answer.status < 300, answer.body]).toEqual([path, true, answer.body]);
  return answer.body as Record<string, unknown>;
}

/** Creates an object of each kind that has a page. Returns the ids of a running and a deleted pod. */
async function createObjects(): Promise<string[]> {
  await create('/volumes', { name: 'data' });
  await create('/templates', { name: 'Mine', docker_image: 'ubuntu', docker_image_tag: '24.04' });
  await create('/secrets', { name: 'TOKEN', value: 'x' });
  await create('/docker-credentials', { docker_username: 'me', docker_password: 'x' });
  await create('/machine-requests', { gpu_class: 'NVIDIA L4', gpu_count: 8 });
  await create('/webhooks', { url: `${new URL('/healthz', demo().base_url)}` });
  const provider = await logInProvider(demo().portal_url, providerSigner(), systemClock);
  await provider.ensureNode({ ip: '127.0.0.1', port: 9, gpuType: 'NVIDIA L4', gpuCount: 1 });
  const gone = await rentOne('gone');
  await untilRunning(gone.id);
  await api(demo(), 'DELETE', `/pods/${gone.id}`);
  const runs = await rentOne('runs');
  await untilRunning(runs.id);
  await create(`/pods/${runs.id}/backup`, {});
  return [runs.id, gone.id];
}

/** Rents a pod once a node is free. */
function rentOne(name: string): Promise<PodRow> {
  return eventually(`a node for ${name}`, async () => {
    const [node] = await listedExecutors();
    if (node === undefined) return false;
    const { status, body } = await rent(node.id, {}, { pod_name: name });
    return status === 200 ? (body as PodRow) : false;
  });
}

/** Visits the pages of the audience, and requires that each route was visited. */
async function clickAll(
  audience: string,
  seeds: readonly string[],
  sessions: Parameters<typeof open>[0] = {},
): Promise<void> {
  const page = await open(sessions);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const run = await clickPages(page, { routes, audience, seeds });
  expect(run.findings).toEqual([]);
  // The test clock exists only in a simulated marketplace; test-clock.test.ts visits it.
  const missed = routes.filter(
    (route) =>
      route.audience === audience && route.isOfSimulation !== true && !run.routes.has(route.path),
  );
  expect(missed.map(({ path }) => path)).toEqual([]);
  expect(run.clicks).toBeGreaterThan(run.pages);
  await page.context().close();
}

const TIMEOUT_MS = 900_000;

it('pages of visitors', { timeout: TIMEOUT_MS }, () =>
  clickAll('anyone', [
    '/log-in',
    '/provider/log-in',
    '/reset-password?token=x',
    '/verify-email?token=x',
  ]),
);

it('pages of renters', { timeout: TIMEOUT_MS }, async () =>
  clickAll('renter', ['/', ...pods.flatMap((id) => [`/pods/${id}`, `/money/pods/${id}`])], {
    session: await demoSession(),
  }),
);

it('pages of providers', { timeout: TIMEOUT_MS }, async () =>
  clickAll('provider', ['/provider', '/provider/nodes'], {
    portalSession: await providerSession(),
  }),
);

it('pages of validators and operators', { timeout: TIMEOUT_MS }, async () => {
  await becomeOperator();
  // A form leads to this page, not a link.
  const weight = `/validator/epochs/1/nodes/${demo().executors[0]?.id}`;
  await clickAll('operator', ['/operator', '/validator', weight], { session: await demoSession() });
});
