import { Dialog } from '../parts/dialog.tsx';
import { useSession } from '../session/session.tsx';
import { ProviderLogInForms } from './log-in-forms.tsx';

/** Requests a log-in to the portal over the page, whose typed input stays. Closing the dialog logs out. */
export function ProviderExpiredDialog() {
  const { isExpired, logOut } = useSession('portal');
  return (
    <Dialog
      title="Your provider session has ended"
      isOpen={isExpired}
      onClose={() => void logOut()}
    >
      <p>Log in to continue on this page. What you have typed stays.</p>
      <ProviderLogInForms />
    </Dialog>
  );
}
