/** Request for the pods of many nodes, from the central API to the gateway of a validator. */
import { z } from 'zod';

export const POD_LISTINGS_PATH = '/v1/pod-listings';
/** Maximum number of nodes of one request. */
export const MAX_LISTED_NODES = 64;

export const PodListingsRequest = z.strictObject({
  executor_ids: z.array(z.uuid()).min(1).max(MAX_LISTED_NODES),
});

/**
 * Answers of the nodes that answered in time. Nodes that did not, or that reported an error, are missing: the caller
 * requests their pods separately and receives the error.
 */
export const PodListings = z.object({
  listings: z.array(z.object({ executor_id: z.uuid(), answer: z.unknown() })).max(MAX_LISTED_NODES),
});
