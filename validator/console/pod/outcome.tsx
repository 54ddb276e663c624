import { useState } from 'react';

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

/** Shows an outcome. The element exists before the text, so that screen readers announce it. */
export function Outcome({ outcome }: { outcome: OutcomeState }) {
  return <div role="status">{outcome.text === null ? null : <p>{outcome.text}</p>}</div>;
}
