/** Hooks that read and change data through the API, with its types. */
import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useRef } from 'react';
import { type ApiOperations, KEYED_API_OPERATIONS } from '../api/api.gen.ts';
import type { RequestOf } from '../api/client.ts';
import { isRepeated, mayHaveSucceeded } from '../api/failure.ts';
import type { LocalOperations } from '../api/local-operations.ts';
import { KEYED_PORTAL_OPERATIONS, type PortalOperations } from '../api/portal.gen.ts';
import { randomKey } from '../browser/random.ts';
import { useClient } from './session.tsx';
import type { SessionKind } from './session-store.ts';

export type QueryOptions<Data = unknown> = {
  /** Reads again at this interval while the page is visible; may depend on the newest data. */
  refetchMs?: number | ((data: Data | undefined) => number);
  enabled?: boolean;
};

type Shape = { params: object; query: object; body: unknown; response: unknown };
type Name<Operations> = keyof Operations & string;
type Answer<Operations, Of extends keyof Operations> = Operations[Of] extends Shape
  ? Operations[Of]['response']
  : never;
type Request<Operations, Of extends keyof Operations> = Operations[Of] extends Shape
  ? RequestOf<Operations[Of]>
  : never;

/** Reads `GET` operations of the API. While a changed request is read, the data of the previous request stays. */
export function useApi<Of extends Name<ApiOperations>>(
  operation: Of,
  request: Request<ApiOperations, Of>,
  options: QueryOptions<Answer<ApiOperations, Of>> = {},
): UseQueryResult<Answer<ApiOperations, Of>, Error> {
  const { api } = useClient('user');
  return useOperation('user', api as Send<ApiOperations, Of>, operation, request, options);
}

/** Like `useApi`, for the provider portal. */
export function usePortal<Of extends Name<PortalOperations>>(
  operation: Of,
  request: Request<PortalOperations, Of>,
  options: QueryOptions<Answer<PortalOperations, Of>> = {},
): UseQueryResult<Answer<PortalOperations, Of>, Error> {
  const { portal } = useClient('portal');
  return useOperation('portal', portal as Send<PortalOperations, Of>, operation, request, options);
}

/** Like `useApi`, for the routes that only a simulated marketplace has. */
export function useLocal<Of extends Name<LocalOperations>>(
  operation: Of,
  options: QueryOptions<Answer<LocalOperations, Of>> = {},
): UseQueryResult<Answer<LocalOperations, Of>, Error> {
  const { local } = useClient('user');
  const request = {} as Request<LocalOperations, Of>;
  return useOperation('user', local as Send<LocalOperations, Of>, operation, request, options);
}

/**
 * Changes data. After a success, everything that the page shows is read again. If the operation accepts an
 * Idempotency-Key, it is repeated after a lost answer, without a second effect.
 */
export function useAction<Of extends Name<ApiOperations>>(
  operation: Of,
): UseMutationResult<Answer<ApiOperations, Of>, Error, Request<ApiOperations, Of>> {
  const { api } = useClient('user');
  return useChange(api as Send<ApiOperations, Of>, operation, KEYED_API_OPERATIONS);
}

/** Like `useAction`, for the provider portal. */
export function usePortalAction<Of extends Name<PortalOperations>>(
  operation: Of,
): UseMutationResult<Answer<PortalOperations, Of>, Error, Request<PortalOperations, Of>> {
  const { portal } = useClient('portal');
  return useChange(portal as Send<PortalOperations, Of>, operation, KEYED_PORTAL_OPERATIONS);
}

/** Like `useAction`, for the routes that only a simulated marketplace has. */
export function useLocalAction<Of extends Name<LocalOperations>>(
  operation: Of,
): UseMutationResult<Answer<LocalOperations, Of>, Error, Request<LocalOperations, Of>> {
  const { local } = useClient('user');
  return useChange(local as Send<LocalOperations, Of>, operation, UNKEYED);
}

/** No route of a simulated marketplace accepts an Idempotency-Key. */
const UNKEYED = { has: () => false };

/** A client's call with the types of one operation. */
type Send<Operations, Of extends keyof Operations> = (
  operation: Of,
  request: Request<Operations, Of>,
) => Promise<Answer<Operations, Of>>;

function useOperation<Of extends string, Given extends object, Data>(
  kind: SessionKind,
  send: (operation: Of, request: Given) => Promise<Data>,
  operation: Of,
  request: Given,
  { refetchMs, enabled = true }: QueryOptions<Data>,
): UseQueryResult<Data, Error> {
  return useQuery<Data, Error>({
    queryKey: [kind, operation, request],
    queryFn: ({ signal }) => send(operation, { ...request, signal }),
    enabled,
    refetchInterval: ({ state }) => intervalOf(refetchMs, state.data),
    placeholderData: keepPreviousData,
  });
}

/** A malformed answer may have no interval. It must not end the page: the panel that shows the data shows the error. */
function intervalOf<Data>(
  refetchMs: QueryOptions<Data>['refetchMs'],
  data: Data | undefined,
): number | false {
  try {
    return (typeof refetchMs === 'function' ? refetchMs(data) : refetchMs) ?? false;
  } catch {
    return false;
  }
}

function useChange<Of extends string, Given extends Keyed, Data>(
  send: (operation: Of, request: Given) => Promise<Data>,
  operation: Of,
  keyed: Pick<ReadonlySet<string>, 'has'>,
): UseMutationResult<Data, Error, Given> {
  const queries = useQueryClient();
  const once = useOnce(send);
  const isKeyed = keyed.has(operation);
  return useMutation({
    mutationFn: (request: Given) => (isKeyed ? once : send)(operation, request),
    retry: (count, error) => isKeyed && isRepeated(count, error),
    onSuccess: () => queries.invalidateQueries(),
  });
}

type Keyed = { idempotencyKey?: string | undefined };

/**
 * Adds an Idempotency-Key. While a failed request may have had its effect, an equal request has the same key, so that
 * a repeat cannot have it twice.
 */
function useOnce<Of extends string, Given extends Keyed, Data>(
  send: (operation: Of, request: Given) => Promise<Data>,
): (operation: Of, request: Given) => Promise<Data> {
  const keys = useRef(new Map<string, string>());
  return async (operation, request) => {
    const text = JSON.stringify(request);
    const idempotencyKey = request.idempotencyKey ?? keys.current.get(text) ?? randomKey();
    keys.current.set(text, idempotencyKey);
    try {
      const answer = await send(operation, { ...request, idempotencyKey });
      keys.current.delete(text);
      return answer;
    } catch (error) {
      if (!mayHaveSucceeded(error)) keys.current.delete(text);
      throw error;
    }
  };
}
