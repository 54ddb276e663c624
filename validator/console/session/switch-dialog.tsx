import { Dialog } from '../parts/dialog.tsx';

type SwitchDialogProps = {
  /** Name of the present session. */
  present: string;
  /** Name of the session that would replace it. */
  offered: string;
  onSwitch: () => void;
  onStay: () => void;
};

/** Lets the user choose between two accounts. Closing the dialog keeps the present account. */
export function SwitchDialog({ present, offered, onSwitch, onStay }: SwitchDialogProps) {
  return (
    <Dialog title="Switch to another account?" isOpen onClose={onStay}>
      <p>
        The link logs in to {offered}. This browser is logged in to {present}.
      </p>
      <div className="row end">
        <button type="button" onClick={onStay}>
          Stay
        </button>
        <button type="button" className="primary" onClick={onSwitch}>
          Switch
        </button>
      </div>
    </Dialog>
  );
}
