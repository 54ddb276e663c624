import type { ReactNode } from 'react';

/** Shows the result of an action. The element exists before its text, so that screen readers announce it. */
export function Outcome({ children }: { children: ReactNode }) {
  return (
    <div role="status" className={children === null ? 'hidden' : 'notice'}>
      {children}
    </div>
  );
}
