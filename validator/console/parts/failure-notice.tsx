import { failureOf } from '../api/failure.ts';
import { isNewerVersion, reloadPage } from '../browser/newer-version.ts';
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
      <Remedy error={error} retry={retry} />
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
