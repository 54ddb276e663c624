/**
 * Plays a full day of a renter, a provider and a validator over every route of both OpenAPI documents, and parses every
 * answer as a strict client does. Such a client rejects an answer if a field with a type in the interface is null or
 * missing.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operationsOf, placesOf, ResponseDocument } from './response-fields.ts';
import { createDayScene, type DayScene } from './strict/day-scene.ts';
import * as operator from './strict/operator-day.ts';
import * as provider from './strict/provider-day.ts';
import * as account from './strict/renter-account.ts';
import * as data from './strict/renter-data.ts';
import * as market from './strict/renter-market.ts';
import * as validator from './strict/validator-day.ts';

/** Operations without a JSON answer, and the tests that read them. */
const STREAMS: Readonly<Record<string, string>> = {
  'GET /pods/{pod_id}/logs': 'validator/central/delivery/streams/pod-logs.test.ts',
  'GET /pods/{id}/terminal': 'validator/central/delivery/streams/gone-client.test.ts',
  'GET /users/me/events/stream': 'validator/central/delivery/events/event-stream.test.ts',
};

/** Lists that have no item in any response of the day, and the reason. */
const EMPTY: Readonly<Record<string, string>> = {
  'ExecutorSpecs.available_port_maps': 'ports are assigned at the rental',
  'ExecutorSpecs.docker.containers': 'containers of renters are not shown',
  'LedgerProof.findings': 'the ledger of the day is sound',
  'RestoreLogResponse.lost_files': 'every file of the day could be read',
  'RentBySpecResponse.nearest': 'the rental found a node, so no constraint excluded every node',
};

let scene: DayScene;
beforeAll(async () => {
  scene = await createDayScene();
  await playDay();
});
afterAll(() => scene.close());

async function playDay(): Promise<void> {
  await account.visitPublicRoutes(scene);
  await provider.setPassword(scene);
  const supplier = await provider.logIn(scene);
  await provider.arrangeProfile(scene, supplier);
  await provider.offerNode(scene, supplier);
  const first = await scene.market.addNode({ gpus: 2 });
  await validator.checkNode(scene, first);
  await provider.openNode(scene, supplier, first.id);
  const second = await scene.market.verifiedNode({ gpus: 2, minimum: 1 });
  await validator.postWeights(scene);
  const nodes = { first: first.id, second: second.id };

  const renter = await account.signUp(scene);
  await account.arrangeAccount(scene, renter);
  await market.searchNodes(scene, renter, nodes);
  const requests = await market.requestMachines(scene, renter);
  const podId = await market.usePod(scene, renter, nodes);
  await validator.readNodes(scene);
  await validator.examineReports(scene);
  await market.readReports(scene, renter);
  await data.useVolumes(scene, renter, nodes);
  await data.backUp(scene, renter, nodes, podId);
  await data.useWebhooks(scene, renter);
  await provider.serveRenters(scene, supplier, { nodeId: first.id, requests });
  await operator.watchMarket(scene, podId);
  await market.endPods(scene, renter);
  await provider.readEarnings(scene);
  await operator.operate(scene, renter.id);
  await account.leave(scene, renter);
}

it('returns only answers that a strict client accepts', () => {
  expect(scene.api.problems).toEqual([]);
  expect(scene.portal.problems).toEqual([]);
});

describe.each(['api', 'portal'] as const)('the document of /%s', (part) => {
  let document: ResponseDocument;
  beforeAll(async () => {
    const url = `/${part}/openapi.json`;
    const answer = await scene.market.server.inject({ method: 'GET', url });
    document = ResponseDocument.parse(answer.json());
  });

  it('has no operation that the day does not visit', () => {
    const missing = operationsOf(document).filter(
      (name) => !scene[part].visited.has(name) && !(name in STREAMS),
    );
    expect(missing).toEqual([]);
  });

  it('has no list that is empty all day', () => {
    const empty = [...placesOf(document).lists].filter(
      (list) => !scene[part].filled.has(list) && !(list in EMPTY),
    );
    expect(empty).toEqual([]);
  });
});
