import { useState } from 'react';
import { FailureNotice } from './failure-notice.tsx';

type ActionButtonProps = {
  label: string;
  isDisabled?: boolean;
  /** Rejects with the error that is shown below the button. */
  run: () => Promise<unknown>;
};

/** A button for an action that needs no confirmation. Shows that the action runs, and its error. */
export function ActionButton({ label, isDisabled = false, run }: ActionButtonProps) {
  const [isPending, setIsPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function start(): Promise<void> {
    setError(null);
    setIsPending(true);
    try {
      await run();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsPending(false);
    }
  }
  return (
    <>
      <button type="button" disabled={isPending || isDisabled} onClick={() => void start()}>
        {isPending ? 'Please wait …' : label}
      </button>
      {error === null ? null : <FailureNotice error={error} />}
    </>
  );
}
