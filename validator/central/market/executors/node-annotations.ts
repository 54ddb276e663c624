/** Annotations of nodes for one request: the caller's bookmarks and machine requests, and old checks. Pure. */
import type { Db } from '../../platform/database/tables.ts';
import type { ExecutorDetailResponse } from './executor.schemas.ts';
import type { FilterSubject } from './node-filters.ts';

export type NodeAnnotations = {
  bookmarked: ReadonlySet<string>;
  /** By node id: the caller's machine request for which the node was added. */
  requestByNode: ReadonlyMap<string, string>;
  /** The machine request in the query, if it belongs to the caller. */
  request: { id: string; isAnsweredBy(node: FilterSubject): boolean } | null;
  /** By node id: the age in minutes of checks that are older than the query permits. Absent without such a filter. */
  oldChecks?: ReadonlyMap<string, number>;
};

/** Annotations for requests without a credential. */
export const NO_ANNOTATIONS: NodeAnnotations = {
  bookmarked: new Set(),
  requestByNode: new Map(),
  request: null,
};

/**
 * Reads the annotations of an account; null for requests without a credential. `requestId` is the machine request in
 * the query.
 */
export type AnnotationsOf = (
  db: Db,
  accountId: string | null,
  requestId?: string,
) => Promise<NodeAnnotations>;

export type PersonalFields = Pick<ExecutorDetailResponse, 'is_bookmarked' | 'machine_request_id'>;

/** Fields that only the caller sees. In a list filtered by a machine request, every node has the id of this request. */
export function personalFields(annotations: NodeAnnotations, nodeId: string): PersonalFields {
  return {
    is_bookmarked: annotations.bookmarked.has(nodeId),
    machine_request_id: annotations.request?.id ?? annotations.requestByNode.get(nodeId) ?? null,
  };
}
