/**
 * The validator's records for its central API, which relays them to operators: routes of the gateway. The routes only
 * read.
 */
import type { z } from 'zod';
import {
  RECORDS,
  RECORDS_PATH,
  type ReleasesQuery,
  type ValidatorStatus,
} from '#shared/api/central/validator-records.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { countMessages, oldestMessageMs } from '../store/outbox.store.ts';
import type { AgentReleaseRow, EvidenceStore } from '../store/tables.ts';
import { listReleases } from '../updates/release.store.ts';
import { lastCycle } from '../weights/cycle.store.ts';
import { lastEpoch } from '../weights/epoch.store.ts';
import { createEpochRecords } from './epoch-records.ts';
import { createEvidenceRecords } from './evidence-records.ts';
import { createWeightExplanations } from './weight-explanations.ts';

export type RecordsOptions = {
  store: EvidenceStore;
  clock: Clock;
  validator: Hotkey;
  /** Keys whose signatures on heads of chains are accepted. */
  trusted: readonly TrustedHotkey[];
};

/** Returns a function that registers a route for each of RECORDS. */
export function createRecords({ store, clock, validator, trusted }: RecordsOptions) {
  const evidence = createEvidenceRecords(store, trusted);
  const epochs = createEpochRecords(store);
  const explain = createWeightExplanations(store, clock);

  return (server: HttpServer): void => {
    serve(server, RECORDS.status, () => statusOf(store, validator));
    serve(server, RECORDS.cycles, ({ query }) => evidence.cycles(query));
    serve(server, RECORDS.verdicts, ({ params, query }) => evidence.verdicts(params.number, query));
    serve(server, RECORDS.documents, ({ params, query }) => evidence.documents(params.id, query));
    serve(server, RECORDS.evidence, ({ params }) => evidence.evidence(params.id));
    serve(server, RECORDS.epochs, ({ query }) => epochs.epochs(query));
    serve(server, RECORDS.epoch, ({ params }) => epochs.epoch(params.number));
    serve(server, RECORDS.weights, ({ params, query }) => epochs.weights(params.number, query));
    serve(server, RECORDS.explanation, async ({ params }) =>
      explain(await epochs.requireEpoch(params.number), params.id),
    );
    serve(server, RECORDS.releases, ({ query }) => releasesIn(store, query));
  };
}

type Served<Params extends z.ZodType, Query extends z.ZodType, Answer extends z.ZodType> = {
  path: string;
  params: Params;
  query: Query;
  answer: Answer;
};

function serve<Params extends z.ZodType, Query extends z.ZodType, Answer extends z.ZodType>(
  server: HttpServer,
  { path, params, query, answer }: Served<Params, Query, Answer>,
  read: (request: {
    params: z.output<Params>;
    query: z.output<Query>;
  }) => Promise<z.output<Answer>>,
): void {
  // The server's types do not contain the types of a record, so the schemas of the record parse the parsed values
  // again.
  const schema = { params, querystring: query, response: { 200: answer } };
  server.get<{ Reply: unknown }>(`${RECORDS_PATH}${path}`, { schema }, (request) =>
    read({ params: params.parse(request.params), query: query.parse(request.query) }),
  );
}

async function statusOf(store: EvidenceStore, hotkey: Hotkey): Promise<ValidatorStatus> {
  const [cycle, epoch] = [await lastCycle(store), await lastEpoch(store)];
  const { waiting, parked } = await countMessages(store);
  const oldestMs = await oldestMessageMs(store);
  return {
    hotkey,
    version: VERSION,
    cycle: cycle?.number ?? null,
    cycle_ended_at: cycle === undefined ? null : naiveUtc(cycle.ended_ms),
    epoch: epoch?.number ?? null,
    epoch_computed_at: epoch === undefined ? null : naiveUtc(epoch.computed_ms),
    messages_waiting: waiting,
    oldest_message_at: oldestMs === null ? null : naiveUtc(oldestMs),
    messages_parked: parked,
  };
}

async function releasesIn(store: EvidenceStore, { limit }: ReleasesQuery) {
  return { releases: (await listReleases(store, limit)).map(releaseOf) };
}

function releaseOf(row: AgentReleaseRow) {
  const { platforms_json: _, since_ms: sinceMs, ...release } = row;
  return { ...release, rollout_since: naiveUtc(sinceMs) };
}
