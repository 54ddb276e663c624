import { type ReactNode, useId, useState } from 'react';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';

const MAX_REASON_CHARS = 500;

type ReasonDialogProps = {
  trigger: string;
  title: string;
  action: string;
  children: ReactNode;
  isDangerous?: boolean;
  isDisabled?: boolean;
  /** Rejects with the error that the dialog shows, for example if the reason is empty. */
  onConfirm: (reason: string) => Promise<unknown>;
};

/** A confirmation with a reason, which the audit trail records. The typed reason stays after an error. */
export function ReasonDialog({ children, onConfirm, ...props }: ReasonDialogProps) {
  const [reason, setReason] = useState('');
  const id = useId();
  return (
    <ConfirmDialog
      {...props}
      onConfirm={async () => {
        await onConfirm(reason.trim());
        setReason('');
      }}
    >
      {children}
      <div className="field">
        <label htmlFor={id}>Reason, for the audit trail</label>
        <textarea
          id={id}
          rows={3}
          maxLength={MAX_REASON_CHARS}
          value={reason}
          onChange={({ target }) => setReason(target.value)}
        />
      </div>
    </ConfirmDialog>
  );
}
