/** Sends generated bad requests to every route: each must return a status of the interface, never 500, and end. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createFuzz, FUZZ_STATUSES, type FuzzRequest, isEndless } from '../fakes/faults/fuzz.ts';
import { createTestMarket, type TestMarket } from '../fakes/scenes/market-fixture.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';

const REQUESTS = 2_000;
const SEED = 20_261_121;
/** Requests before a new account is used: some of them change or delete the account. */
const REQUESTS_PER_ACCOUNT = 250;
const ANSWER_WITHIN_MS = 5_000;

let market: TestMarket;
beforeAll(async () => {
  market = await createTestMarket();
});
afterAll(() => market.close());

async function answerTo({ method, path, headers, body }: FuzzRequest) {
  const tooLate = new AbortController();
  const answer = market.server.inject({
    method: method as 'GET',
    url: `/api${path}`,
    headers,
    ...(body === undefined ? {} : { payload: body }),
  });
  const never = systemClock.sleep(ANSWER_WITHIN_MS, tooLate.signal).then(() => null);
  never.catch(() => undefined);
  const first = await Promise.race([answer, never]);
  tooLate.abort();
  return first;
}

it(`returns a status of the interface for ${REQUESTS} bad requests`, async () => {
  const random = createSeededRandom(SEED);
  const node = await market.verifiedNode({ gpus: 8, minimum: 1 });
  let ids: string[] = [];
  const { body: document } = await market.call('GET', '/openapi.json');
  const fuzz = createFuzz(document, random, () => ids);
  expect(REQUESTS).toBeGreaterThan(10 * fuzz.operations);
  let credentials: Record<string, string>[] = [];
  const seen = new Map<number, number>();
  for (let index = 0; index < REQUESTS; index += 1) {
    if (index % REQUESTS_PER_ACCOUNT === 0) {
      const account = await market.renter();
      const pod = (await market.rent(account, node.id, { gpu_count: 1 })).body;
      credentials = [account.key, account.session];
      ids = [node.id, pod.id, account.id].filter((id) => typeof id === 'string');
    }
    const request = fuzz.next(index, credentials[index % 2] ?? {});
    if (isEndless(request.path)) continue;
    const answer = await answerTo(request);
    const what = JSON.stringify({ index, ...request }).slice(0, 600);
    expect([what, answer?.statusCode, answer?.body.slice(0, 300)]).toEqual([
      what,
      expect.toSatisfy((status: number) => FUZZ_STATUSES.has(status)),
      expect.anything(),
    ]);
    const status = answer?.statusCode ?? 0;
    seen.set(status, (seen.get(status) ?? 0) + 1);
    expect([what, answer?.headers['x-request-id']]).toEqual([what, expect.any(String)]);
  }
  // Some requests also passed the schemas and reached the business rules.
  for (const status of [200, 400, 401, 404, 405, 422]) expect(seen.get(status)).toBeGreaterThan(10);
});
