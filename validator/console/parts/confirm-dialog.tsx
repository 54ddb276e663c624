import { AlertDialog } from '@base-ui/react/alert-dialog';
import { type ReactNode, useState } from 'react';
import { FailureNotice } from './failure-notice.tsx';

type ConfirmDialogProps = {
  /** Text of the button that opens the dialog. */
  trigger: string;
  /** Question, for example “Delete pod hello?”. */
  title: string;
  /** Describes what happens, and what is lost. */
  children: ReactNode;
  /** Text of the button that confirms. */
  action: string;
  isDangerous?: boolean;
  isDisabled?: boolean;
  /** Rejects with the error that the dialog shows; the dialog then stays open. */
  onConfirm: () => Promise<unknown>;
};

/** A button that requests a confirmation in a dialog. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { trigger, title, children, action, isDangerous = false, isDisabled = false } = props;
  const [isOpen, setIsOpen] = useState(false);
  const [isPending, setIsPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function confirm(): Promise<void> {
    setError(null);
    setIsPending(true);
    try {
      await props.onConfirm();
      setIsOpen(false);
    } catch (failure) {
      setError(failure);
    } finally {
      setIsPending(false);
    }
  }
  return (
    <AlertDialog.Root
      open={isOpen}
      onOpenChange={(open) => {
        setError(null);
        setIsOpen(open);
      }}
    >
      <AlertDialog.Trigger className={isDangerous ? 'danger' : undefined} disabled={isDisabled}>
        {trigger}
      </AlertDialog.Trigger>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="backdrop" />
        <AlertDialog.Popup className="dialog">
          <AlertDialog.Title>{title}</AlertDialog.Title>
          <AlertDialog.Description render={<div />}>{children}</AlertDialog.Description>
          {error === null ? null : <FailureNotice error={error} />}
          <div className="row end">
            <AlertDialog.Close>Cancel</AlertDialog.Close>
            <button
              type="button"
              className={isDangerous ? 'danger primary' : 'primary'}
              disabled={isPending}
              onClick={() => void confirm()}
            >
              {isPending ? 'Please wait …' : action}
            </button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
