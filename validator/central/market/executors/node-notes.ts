/** What a caller has noted about nodes: bookmarks and machine requests (contract 3.1). Pure. */
import type { Db } from '../../platform/database/tables.ts';
import type { FilterSubject } from './executor.filters.ts';
import type { ExecutorDetailResponse } from './executor.schemas.ts';

export type NodeNotes = {
  /** Ids of nodes. */
  bookmarked: ReadonlySet<string>;
  /** The caller's machine request that a node was added for, by the node's id. */
  requestByNode: ReadonlyMap<string, string>;
  /** The machine request that was asked about, if it is the caller's. */
  asked: { id: string; isAnsweredBy(node: FilterSubject): boolean } | null;
};

/** Of somebody without a credential. */
export const NO_NOTES: NodeNotes = {
  bookmarked: new Set(),
  requestByNode: new Map(),
  asked: null,
};

/** Reads those of an account, null for nobody; `requestId` is the machine request that is asked about. */
export type NotesOf = (db: Db, accountId: string | null, requestId?: string) => Promise<NodeNotes>;

export type PersonalMembers = Pick<ExecutorDetailResponse, 'is_bookmarked' | 'machine_request_id'>;

/** The members of a node's row that only a known caller sees. Every row of a list that was asked for by a request has its id. */
export function personalMembers(notes: NodeNotes, nodeId: string): PersonalMembers {
  return {
    is_bookmarked: notes.bookmarked.has(nodeId),
    machine_request_id: notes.asked?.id ?? notes.requestByNode.get(nodeId) ?? null,
  };
}
