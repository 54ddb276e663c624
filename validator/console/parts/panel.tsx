import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';
import { ErrorBoundary } from './error-boundary.tsx';
import { FailureNotice } from './failure-notice.tsx';

type PanelProps = {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
};

/** A titled section of a page. An error inside it disables only this section. */
export function Panel({ title, actions, children }: PanelProps) {
  const id = useId();
  return (
    <section className="panel" aria-labelledby={id}>
      <header className="panel-head">
        <h2 id={id}>{title}</h2>
        {actions === undefined ? null : <div className="row">{actions}</div>}
      </header>
      <ErrorBoundary>{children}</ErrorBoundary>
    </section>
  );
}

type QueryPanelProps<Data> = {
  title: string;
  actions?: ReactNode;
  query: UseQueryResult<Data, Error>;
  /** Returns true if `empty` replaces the content. */
  isEmpty?: (data: Data) => boolean;
  empty?: ReactNode;
  children: (data: Data) => ReactNode;
};

/**
 * A panel with the data of a query: shows that it loads, that there is nothing, or why it failed. If a later read fails,
 * the data of the last one stays, below the error.
 */
export function QueryPanel<Data>({ title, actions, ...content }: QueryPanelProps<Data>) {
  return (
    <Panel title={title} actions={actions}>
      <QueryContent {...content} />
    </Panel>
  );
}

/** The content of a `QueryPanel` without its frame. */
export function QueryContent<Data>(props: Omit<QueryPanelProps<Data>, 'title' | 'actions'>) {
  const { query, isEmpty, empty = 'There is nothing yet.', children } = props;
  const { data, error, isPending, refetch } = query;
  // A log-in reads everything again, which must not begin twice.
  const retry = () => void refetch({ cancelRefetch: false });
  if (isPending) return <Loading />;
  return (
    <>
      {error === null ? null : <FailureNotice error={error} retry={retry} />}
      {data === undefined ? null : (
        <ErrorBoundary onRetry={retry} resetKey={data}>
          <QueryData data={data} isEmpty={isEmpty} empty={empty}>
            {children}
          </QueryData>
        </ErrorBoundary>
      )}
    </>
  );
}

/** A component, so that its error boundary also catches errors of `children`, which a malformed answer causes. */
function QueryData<Data>(props: {
  data: Data;
  isEmpty: ((data: Data) => boolean) | undefined;
  empty: ReactNode;
  children: (data: Data) => ReactNode;
}) {
  const { data, isEmpty, empty, children } = props;
  return isEmpty?.(data) === true ? <div className="empty">{empty}</div> : children(data);
}

export function Loading() {
  return (
    <p className="loading" role="status">
      Loading …
    </p>
  );
}
