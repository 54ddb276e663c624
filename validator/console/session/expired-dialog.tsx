import { Dialog } from '../parts/dialog.tsx';
import { LogInForm } from './log-in-form.tsx';
import { useSession } from './session.tsx';

/** Requests a log-in over the page, whose typed input stays. Closing the dialog logs out. */
export function ExpiredDialog() {
  const { session, isExpired, logOut } = useSession();
  return (
    <Dialog title="Your session has ended" isOpen={isExpired} onClose={() => void logOut()}>
      <p>Log in to continue on this page. What you have typed stays.</p>
      <LogInForm email={session?.name ?? ''} />
    </Dialog>
  );
}
