import { failureOf } from '../api/failure.ts';
import { CopyButton } from './copy-button.tsx';

/** Shows an error with its code, hint and request id, and a button that tries again. */
export function FailureNotice({
  error,
  retry,
}: {
  error: unknown;
  retry?: (() => void) | undefined;
}) {
  const failure = failureOf(error);
  const { code, hint, requestId } = failure.facts;
  return (
    <div className="notice bad" role="alert">
      <p>
        <strong>{failure.message}</strong> <code>{code}</code>
      </p>
      <p>{hint}</p>
      {requestId === null ? null : (
        <p className="row small">
          <span>
            Request <code>{requestId}</code>
          </span>
          <CopyButton text={requestId} label="Copy the request id" />
        </p>
      )}
      {retry === undefined ? null : (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
