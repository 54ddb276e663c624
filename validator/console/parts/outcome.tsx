import { type ReactNode, useState } from 'react';

export type OutcomeState = {
  text: string | null;
  show: (text: string) => void;
  clear: () => void;
};

/** Stores what the last action of a panel has done. */
export function useOutcome(): OutcomeState {
  const [text, setText] = useState<string | null>(null);
  return { text, show: setText, clear: () => setText(null) };
}

/** Shows the result of an action. The element exists before its text, so that screen readers announce it. */
export function Outcome({ children }: { children: ReactNode }) {
  return (
    <div role="status" className={children === null ? 'hidden' : 'notice'}>
      {children}
    </div>
  );
}
