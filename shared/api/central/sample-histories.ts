/** Request for the retained samples of many nodes, from the central API to the gateway of a validator. */
import { z } from 'zod';
import { SampleHistoryQuery } from '../agent/metric-history.ts';

export const SAMPLE_HISTORIES_PATH = '/v1/sample-histories';
/** Maximum number of nodes of one request. */
export const MAX_HISTORIES = 16;

export const SampleHistoriesRequest = z.strictObject({
  queries: z
    .array(SampleHistoryQuery.extend({ executor_id: z.uuid() }))
    .min(1)
    .max(MAX_HISTORIES),
});

/** Answers of the nodes that answered in time, as in `PodListings`. */
export const SampleHistories = z.object({
  histories: z.array(z.object({ executor_id: z.uuid(), answer: z.unknown() })).max(MAX_HISTORIES),
});
