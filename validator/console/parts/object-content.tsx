import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { failureOf, namesNothing } from '../api/failure.ts';
import { FailureNotice } from './failure-notice.tsx';
import type { PageLink } from './failure-words.ts';

type ObjectContentProps = {
  /** The read of the object. */
  query: Pick<UseQueryResult<unknown, Error>, 'error'>;
  /** The kind of object, for example “pod”. */
  what: string;
  /** The list in which the reader finds such objects. */
  list: PageLink;
  children: ReactNode;
};

/** The panels of a page about one object. If the address names none, one message with a link replaces them all. */
export function ObjectContent({ query: { error }, what, list, children }: ObjectContentProps) {
  if (error === null || !namesNothing(failureOf(error))) return children;
  const words = {
    message: `There is no such ${what}`,
    hint: `Check the address. The ${what} may have been removed, or you may not see it. Go to`,
    link: list,
    problems: [],
  };
  return <FailureNotice error={error} words={words} />;
}
