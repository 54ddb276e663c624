import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import { failureOf, mayPass } from '../api/failure.ts';
import { isNewerVersion, reloadPage } from '../browser/newer-version.ts';
import { useIsOfEndedSession } from '../session/session.tsx';
import { CopyButton } from './copy-button.tsx';
import { describeFailure, type FailureWords } from './failure-words.ts';

type FailureNoticeProps = {
  error: unknown;
  /** Tries again. The button is shown only if that can help. Also called once after a log-in that the error required. */
  retry?: (() => void) | undefined;
  /** Labels of the fields of a form, by their names, if the form shows the error. */
  labels?: ReadonlyMap<string, string>;
  /** Replaces the usual words for the error. */
  words?: FailureWords;
};

/** Shows an error in words for people, with its code, its request id and the next step. */
export function FailureNotice({ error, retry, labels, words }: FailureNoticeProps) {
  const failure = failureOf(error);
  const isPast = useIsOfEndedSession(failure);
  const repeat = useRef(retry);
  repeat.current = retry;
  useEffect(() => {
    if (isPast) repeat.current?.();
  }, [isPast]);
  // The reader has logged in again since.
  if (isPast) return null;
  const { code, requestId } = failure.facts;
  const hasRetry = retry !== undefined && mayPass(failure);
  const place = { hasRetry, ...(labels === undefined ? {} : { labels }) };
  const { message, hint, link, problems } = words ?? describeFailure(failure, place);
  return (
    <div className="notice bad" role="alert">
      <p>
        <strong>{message}</strong> <code>{code}</code>
      </p>
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
      <p>
        {hint} {link === null ? null : <Link href={link.path}>{link.title}</Link>}
      </p>
      {requestId === null ? null : (
        <p className="row small">
          <span>
            Request <code>{requestId}</code>
          </span>
          <CopyButton text={requestId} label="Copy the request id" />
        </p>
      )}
      <Remedy error={error} retry={hasRetry ? retry : undefined} />
    </div>
  );
}

function Remedy({ error, retry }: { error: unknown; retry: (() => void) | undefined }) {
  if (isNewerVersion(error)) {
    return (
      <button type="button" onClick={reloadPage}>
        Load the page again
      </button>
    );
  }
  if (retry === undefined) return null;
  return (
    <button type="button" onClick={retry}>
      Try again
    </button>
  );
}
