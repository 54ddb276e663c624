import type { ReactNode } from 'react';
import { ConfirmDialog } from './confirm-dialog.tsx';

type DeleteButtonProps = {
  /** Kind and name of the object, for example `SSH key laptop`. */
  what: string;
  /** Describes what is lost. */
  children: ReactNode;
  isDisabled?: boolean;
  onDelete: () => Promise<unknown>;
};

export function DeleteButton({ what, children, isDisabled = false, onDelete }: DeleteButtonProps) {
  return (
    <ConfirmDialog
      trigger="Delete"
      title={`Delete ${what}?`}
      action="Delete"
      isDangerous
      isDisabled={isDisabled}
      onConfirm={onDelete}
    >
      {children}
    </ConfirmDialog>
  );
}
