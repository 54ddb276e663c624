import { beforeEach, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { MAX_LISTED_NODES } from '#shared/api/central/pod-listings.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createGatheredRequests } from './gathered-requests.ts';
import { POD_LISTINGS, SAMPLE_HISTORIES } from './gathered-routes.ts';

const NODES = Array.from(
  { length: MAX_LISTED_NODES + 1 },
  (_, index) => `11111111-1111-4111-8111-${String(index).padStart(12, '0')}`,
);
const [A = '', B = '', C = ''] = NODES;

let clock: ManualClock;
let list: (id: string, alone: () => Promise<PodView[]>) => Promise<PodView[]>;
/** Ids of each request for many nodes. */
let requests: string[][];
/** Ids of nodes whose pods were requested separately. */
let separate: string[];
/** Answers to a request for many nodes. */
let answer: (ids: string[]) => Response;

beforeEach(() => {
  clock = createManualClock();
  requests = [];
  separate = [];
  answer = (ids) => Response.json({ listings: ids.map((id) => listing(id)) });
  const gather = createGatheredRequests(POD_LISTINGS, {
    clock,
    async send({ body = '' }) {
      const { executor_ids: ids } = JSON.parse(body) as { executor_ids: string[] };
      requests.push(ids);
      return answer(ids);
    },
  });
  list = (id, alone) => gather(id, null, alone);
});

const listing = (id: string, pods: unknown = []) => ({ executor_id: id, answer: { pods } });

async function listAll(ids: readonly string[]): Promise<PodView[][]> {
  const listed = Promise.all(
    ids.map((id) =>
      list(id, async () => {
        separate.push(id);
        return [];
      }),
    ),
  );
  await clock.advance(10);
  return listed;
}

it('requests the pods of several nodes at once, and of a single node separately', async () => {
  expect(await listAll([A, B])).toEqual([[], []]);
  expect(requests).toEqual([[A, B]]);
  expect(separate).toEqual([]);
  await listAll([C]);
  expect(requests).toHaveLength(1);
  expect(separate).toEqual([C]);
});

it('limits the nodes of a request', async () => {
  await listAll(NODES);
  expect(requests).toEqual([NODES.slice(0, MAX_LISTED_NODES)]);
  expect(separate).toEqual(NODES.slice(MAX_LISTED_NODES));
});

describe('a node whose answer is missing or invalid', () => {
  it('is requested separately, until it answers in this way', async () => {
    answer = (ids) =>
      Response.json({ listings: ids.filter((id) => id !== B).map((id) => listing(id)) });
    await listAll([A, B, C]);
    expect(separate).toEqual([B]);
    answer = (ids) => Response.json({ listings: ids.map((id) => listing(id)) });
    await listAll([A, B, C]);
    await listAll([A, B, C]);
    expect(requests).toEqual([
      [A, B, C],
      [A, C],
      [A, B, C],
    ]);
    expect(separate).toEqual([B, B]);
  });

  it('does not affect the others', async () => {
    answer = () => Response.json({ listings: [listing(A), listing(B, [{ id: 1 }])] });
    await listAll([A, B]);
    expect(separate).toEqual([B]);
  });

  it('fails with the error of the separate request', async () => {
    answer = () => Response.json({ listings: [listing(A)] });
    const fails = async () => {
      throw new ApiError('upstream_unavailable', 'silent');
    };
    const failed = expect(list(B, fails)).rejects.toThrow('silent');
    await Promise.all([listAll([A]), failed]);
  });
});

it.each([
  ['fails', () => new Response('', { status: 502 })],
  ['has another form', () => Response.json({ other: 1 })],
])('requests every node separately if the request %s, and tries again', async (_, given) => {
  answer = given;
  await listAll([A, B]);
  expect(separate).toEqual([A, B]);
  await listAll([A, B]);
  expect(requests).toHaveLength(2);
});

it('does not ask a gateway without the route again for ten minutes', async () => {
  answer = () => new Response('', { status: 404 });
  await listAll([A, B]);
  await listAll([A, B]);
  expect(requests).toHaveLength(1);
  expect(separate).toEqual([A, B, A, B]);
  await clock.advance(600_000);
  await listAll([A, B]);
  expect(requests).toHaveLength(2);
});

it('sends the query of each node, and requests the second query of a node separately', async () => {
  const history = { epoch: A, newest: null, more: false, series: [] };
  const sent: unknown[] = [];
  const read = createGatheredRequests(SAMPLE_HISTORIES, {
    clock,
    async send({ path, body = '' }) {
      sent.push([path, JSON.parse(body)]);
      return Response.json({
        histories: [
          { executor_id: A, answer: history },
          { executor_id: B, answer: { ...history, more: 'yes' } },
        ],
      });
    },
  });
  const alone = (name: string) => async () => {
    sent.push(name);
    return { ...history, epoch: name };
  };
  const read3 = Promise.all([
    read(A, { epoch: C, after: 7 }, alone('a')),
    read(B, {}, alone('b')),
    read(A, {}, alone('again')),
  ]);
  await clock.advance(10);
  expect((await read3).map(({ epoch }) => epoch)).toEqual([A, 'b', 'again']);
  const queries = [{ executor_id: A, epoch: C, after: 7 }, { executor_id: B }];
  expect(sent).toEqual(['again', ['/v1/sample-histories', { queries }], 'b']);
});
