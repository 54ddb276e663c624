/** Routes of the gateway that answer for many nodes at once. */
import { SampleHistory, type SampleHistoryQuery } from '#shared/api/agent/metric-history.ts';
import { PodList, type PodView } from '#shared/api/agent/pod.ts';
import {
  MAX_LISTED_NODES,
  POD_LISTINGS_PATH,
  PodListings,
} from '#shared/api/central/pod-listings.ts';
import {
  MAX_HISTORIES,
  SAMPLE_HISTORIES_PATH,
  SampleHistories,
} from '#shared/api/central/sample-histories.ts';
import type { GatheredRoute } from './gathered-requests.ts';

export const POD_LISTINGS: GatheredRoute<null, PodView[]> = {
  path: POD_LISTINGS_PATH,
  maxNodes: MAX_LISTED_NODES,
  bodyOf: (queries) => ({ executor_ids: queries.map(({ executorId }) => executorId) }),
  answersIn: (body) =>
    new Map(
      PodListings.parse(body).listings.flatMap(({ executor_id: id, answer }) => {
        const parsed = PodList.safeParse(answer);
        return parsed.success ? [[id, parsed.data.pods] as const] : [];
      }),
    ),
};

export const SAMPLE_HISTORIES: GatheredRoute<SampleHistoryQuery, SampleHistory> = {
  path: SAMPLE_HISTORIES_PATH,
  maxNodes: MAX_HISTORIES,
  bodyOf: (queries) => ({
    queries: queries.map(({ executorId, query }) => ({ executor_id: executorId, ...query })),
  }),
  answersIn: (body) =>
    new Map(
      SampleHistories.parse(body).histories.flatMap(({ executor_id: id, answer }) => {
        const parsed = SampleHistory.safeParse(answer);
        return parsed.success ? [[id, parsed.data] as const] : [];
      }),
    ),
};
